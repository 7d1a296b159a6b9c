// The sshd of a pod: run by the pod's own user, for the job's key only.
#pragma once

#include <optional>
#include <string>

#include "launch/child.hpp"

namespace lockstep::launch {

class Sshd {
 public:
  /// `folder`: as written by write_ssh_files(). Throws Error(configuration) if there is no sshd.
  explicit Sshd(const std::string& folder);

  /// Accepts no new connections from now on; existing ones continue.
  void close_door();
  /// Throws Error(infrastructure) if sshd has ended.
  void check();

 private:
  Child daemon_;
};

/// Its full path, which it needs to re-execute itself. Empty if there is none.
[[nodiscard]] std::string find_sshd();

}  // namespace lockstep::launch
