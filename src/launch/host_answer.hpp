// What a host says of itself when it is asked whether it can join ranks that train: its version of the program, the
// fingerprint of its processor and libraries, and which launch it sees in the run directory. Pure.
#pragma once

#include <string>

namespace lockstep::launch {

struct HostAnswer {
  std::string version;      ///< "1.4.0"
  std::string fingerprint;  ///< of what its bits depend on
  std::string launch;       ///< the name in launch.lock; empty: it has no such file
};

/// What `lockstep version` prints, and after it launch.lock, perhaps among lines of the host's shell.
[[nodiscard]] HostAnswer parse_host_answer(const std::string& output);

/// Why a host with this answer cannot join those that have the other one; empty: it can. Parts that are empty in
/// `expected` are not compared.
[[nodiscard]] std::string why_unfit(const HostAnswer& found, const HostAnswer& expected);

}  // namespace lockstep::launch
