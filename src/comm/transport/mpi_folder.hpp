// The folder in /dev/shm in which Open MPI keeps the memory by which the ranks of a host send each other messages.
//
// Open MPI removes its files when it ends, or mpirun does when a rank was killed; of those of a killed mpirun nobody
// knows. So each rank has a folder of its own for them, and holds a lock on it (flock) for as long as the process
// lives: a folder without a lock is a dead rank's, and goes. A lock says this of processes in other containers, too,
// which share /dev/shm and know each other's process ids by other numbers.
#pragma once

#include <string>

#include "comm/transport/file_server.hpp"

namespace lockstep::comm {

class MpiFolder {
 public:
  /// Makes the folder, and sets the environment for Open MPI to use it: before MPI starts, by a process that has one
  /// thread yet or whose other threads do not read the environment. Does nothing where the environment says already
  /// which folder to use, or where /dev/shm cannot be written; Open MPI then chooses, as ever. The first rank of a host
  /// removes those of dead ranks.
  MpiFolder();
  ~MpiFolder() { remove(); }
  MpiFolder(const MpiFolder&) = delete;
  MpiFolder& operator=(const MpiFolder&) = delete;
  /// With all that is in it. Ranks that have started MPI do not need it any more: they have mapped the files.
  void remove() noexcept;
  [[nodiscard]] const std::string& path() const { return path_; }  ///< empty: none was made

 private:
  std::string path_;
  FileHandle lock_;
};

/// Removes the folders of this user's ranks that are dead; never one of a live rank.
void remove_dead_mpi_folders();

}  // namespace lockstep::comm
