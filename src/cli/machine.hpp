// What this machine has, for `lockstep doctor`. Everything is read on each call; nothing throws.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::cli {

struct Library {
  std::string name;     ///< "oneDNN"
  std::string file;     ///< the file that this process has loaded; empty: not found
  std::string package;  ///< the Debian package that contains it
};

[[nodiscard]] std::string system_name();  ///< "Debian GNU/Linux 12 (bookworm), Linux 6.1.0"
[[nodiscard]] int cores_of_machine();
[[nodiscard]] int cores_by_affinity();                      ///< on which this process may run
[[nodiscard]] double cores_by_quota();                      ///< the cgroup's CPU quota; 0: no limit
[[nodiscard]] std::int64_t memory_bytes();                  ///< the machine's total memory
[[nodiscard]] std::int64_t memory_limit_bytes();            ///< the cgroup's limit; 0: no limit
[[nodiscard]] std::int64_t shared_memory_bytes(bool free);  ///< /dev/shm; -1: none
[[nodiscard]] std::vector<Library> libraries();

struct CommandResult {
  int code = -1;       ///< 127: no such program
  std::string output;  ///< stdout and stderr
};
/// Runs a command through the shell, with each word in single quotes; no word may contain one.
[[nodiscard]] CommandResult run_command(const std::vector<std::string>& words);

}  // namespace lockstep::cli
