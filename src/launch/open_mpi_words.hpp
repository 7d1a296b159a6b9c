// Open MPI's own words among what mpirun prints: blocks between two lines of dashes, and lines that begin with
// "[HOST:PROCESS]" or "mpirun:". They tell a user nothing while a rank says itself what is wrong, and everything when
// it cannot.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::launch {

class OpenMpiWords {
 public:
  /// Takes a line without its end. Returns whether it is a rank's, to be passed on.
  [[nodiscard]] bool take(std::string_view line);
  /// Whether a rank has reported an error: "lockstep: ...".
  bool rank_has_spoken() const { return spoken_; }

  /// How a rank ended, if Open MPI tells: "killed by signal 9 (Killed)". `rank` -1: the first that it names.
  std::string death(int rank) const;
  /// The rank that ended first, as far as Open MPI tells, and how: by a signal, or "ended with 127".
  struct Death {
    int rank;
    std::string cause;
  };
  std::optional<Death> first_death() const;
  /// The host on which mpirun could not start the program, or "".
  std::string host_without_program() const;
  /// What went wrong first, in a few lines; empty: nothing is known.
  std::string first_block() const;

 private:
  std::string blocks_, lines_;  ///< with the rules around them; outside
  bool in_block_ = false, spoken_ = false;
};

/// Added to a death while the kernel killed processes of this cgroup for want of memory.
inline constexpr const char* kOutOfMemory =
    " by the kernel: the memory of its cgroup is used up; raise that limit, or make batch_size or "
    "data.cache.memory.budget smaller";

/// Those in a file.
[[nodiscard]] OpenMpiWords open_mpi_words_in(const std::string& path);

}  // namespace lockstep::launch
