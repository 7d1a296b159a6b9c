// Processes of a launch, found by its mark: the environment variable LOCKSTEP_LAUNCH, which every rank inherits, or a
// word on the command line, which Open MPI's daemons have. So processes that mpirun has lost track of are found, too.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::launch {

inline constexpr const char* kMarkVariable = "LOCKSTEP_LAUNCH";
inline constexpr const char* kMarkSetting = "lockstep_launch";  ///< mpirun's setting, followed by the mark

/// The words of a file in /proc in which each ends with a zero byte: `cmdline`, `environ`. None if it cannot be read.
[[nodiscard]] std::vector<std::string> words_of(const std::string& path);

/// On this machine, except this process and others that are ending the launch.
[[nodiscard]] std::vector<pid_t> marked_processes(const std::string& mark);

/// On this machine, of any launch: only ranks, or also the processes that start and serve them.
[[nodiscard]] std::vector<pid_t> ranks_here();
[[nodiscard]] std::vector<pid_t> launch_processes_here();

/// Kills them all except `spared`, repeatedly until none is left; returns how many were found. Gives up after
/// `patience` (a process in uninterruptible sleep dies only when its disk answers).
int kill_marked(const std::string& mark, pid_t spared, std::chrono::milliseconds patience);

/// 128 random bits as 32 hexadecimal digits: for marks and secrets.
[[nodiscard]] std::string random_hex();

}  // namespace lockstep::launch
