// What mpirun and its ranks print, passed on to this program's streams line by line. mpirun itself would end all ranks
// after some broken pipes, and stop them while nobody reads; so it writes here, and Consoles write on.
#pragma once

#include <array>
#include <chrono>
#include <string>

#include "launch/open_mpi_words.hpp"
#include "observe/telemetry/console.hpp"

namespace lockstep::launch {

class MpirunOutput {
 public:
  /// `lossy`: rather leave lines out than hold the ranks up; else they wait. Throws Error(infrastructure).
  explicit MpirunOutput(bool lossy);
  ~MpirunOutput();
  MpirunOutput(const MpirunOutput&) = delete;
  MpirunOutput& operator=(const MpirunOutput&) = delete;

  /// The ends for mpirun's stdout and stderr.
  int prints() const { return streams_[0].writer; }
  int errors() const { return streams_[1].writer; }
  /// Closes these, once mpirun has them.
  void started();
  /// Passes on what is there; waits for something, but not longer than `patience`, nor once `wake` can be read.
  void pass_on(std::chrono::milliseconds patience, int wake);
  /// After the end of mpirun: passes the rest on. Returns why stdout is not complete, or "".
  [[nodiscard]] std::string finish();
  const OpenMpiWords& words() const { return words_; }

 private:
  struct Stream {
    int reader = -1, writer = -1;
    std::string line;  ///< its beginning, until the rest comes
  };
  void read(Stream& stream, telemetry::Console& to);

  bool lossy_;
  std::array<Stream, 2> streams_;
  telemetry::Console out_, err_;
  OpenMpiWords words_;
};

}  // namespace lockstep::launch
