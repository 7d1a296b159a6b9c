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

  /// Nobody new is let in from now on; who is in stays.
  void close_door();
  /// Throws Error(infrastructure) when it has ended by itself.
  void check();

 private:
  Child daemon_;
};

/// Its path: sshd starts itself again, and wants it in full. Empty when there is none.
[[nodiscard]] std::string find_sshd();

}  // namespace lockstep::launch
