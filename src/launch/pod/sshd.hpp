// The sshd of a pod: run by the pod's own user, for the job's key only.
#pragma once

#include <optional>
#include <string>

#include "launch/child.hpp"

namespace lockstep::launch {

class Sshd {
 public:
  /// `folder`: as write_ssh_files() left it. Throws Error(configuration) where there is no sshd.
  explicit Sshd(const std::string& folder);

  /// Accepts no new connections from now on; existing ones stay.
  void close_door();
  /// Throws Error(infrastructure) when sshd has ended.
  void check();

 private:
  Child daemon_;
};

/// Its path: sshd re-executes itself, and needs the full path. Empty when there is none.
[[nodiscard]] std::string find_sshd();

}  // namespace lockstep::launch
