// The folder in /dev/shm in which Open MPI keeps the shared memory that ranks of a host exchange messages through.
//
// Open MPI removes its files when it ends, and mpirun does when a rank was killed; after a killed mpirun, nobody does.
// So each rank has its own folder for them, and holds a lock on it (flock) as long as the process lives: a folder
// without a lock belongs to a dead rank, and is removed. This also works for processes in other containers, which share
// /dev/shm but see each other under other process ids.
#pragma once

#include <string>

#include "comm/transport/file_server.hpp"

namespace lockstep::comm {

class MpiFolder {
 public:
  /// Makes the folder, and sets the environment so that Open MPI uses it. Must run before MPI starts, while the process
  /// has a single thread or its other threads do not read the environment. Does nothing if the environment already
  /// names a folder, or if /dev/shm is not writable; Open MPI then chooses as usual. The first rank of a host removes
  /// the folders of dead ranks. Throws Error(infrastructure) if /dev/shm has no room for the messages of this rank, or
  /// could never have room for those of all ranks of this host.
  MpiFolder();
  ~MpiFolder() { remove(); }
  MpiFolder(const MpiFolder&) = delete;
  MpiFolder& operator=(const MpiFolder&) = delete;
  /// Removes the folder with its content. Ranks that have started MPI no longer need it: they have mapped the files.
  void remove() noexcept;
  const std::string& path() const { return path_; }  ///< empty: no folder was made

 private:
  std::string path_;
  FileHandle lock_;
};

/// Removes the folders of this user's dead ranks, never that of a live one.
void remove_dead_mpi_folders();

}  // namespace lockstep::comm
