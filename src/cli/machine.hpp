// What this machine has, for `lockstep doctor`. Everything is read when asked for; nothing throws.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::cli {

struct Library {
  std::string name;     ///< "oneDNN"
  std::string file;     ///< the file that this process has loaded; empty: not found
  std::string package;  ///< of Debian, that holds it
};

[[nodiscard]] std::string system_name();  ///< "Debian GNU/Linux 12 (bookworm), Linux 6.1.0"
[[nodiscard]] int cores_of_machine();
[[nodiscard]] int cores_by_affinity();                      ///< that this process may run on
[[nodiscard]] double cores_by_quota();                      ///< of the cgroup; 0: no limit
[[nodiscard]] std::int64_t memory_bytes();                  ///< of the machine
[[nodiscard]] std::int64_t memory_limit_bytes();            ///< of the cgroup; 0: no limit
[[nodiscard]] std::int64_t shared_memory_bytes(bool free);  ///< /dev/shm; -1: none
[[nodiscard]] std::vector<Library> libraries();

struct CommandResult {
  int code = -1;       ///< 127: no such program
  std::string output;  ///< both streams
};
/// Runs words without a shell's help; no word may hold a quote.
[[nodiscard]] CommandResult run_command(const std::vector<std::string>& words);

}  // namespace lockstep::cli
