// The cgroups that limit this process, v1 or v2: its own and all above it that can be seen from here.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace lockstep {

class Cgroups {
 public:
  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

  /// `root`: before /proc and /sys, for tests.
  explicit Cgroups(const std::string& root = "");

  /// The smallest quota, in cores; 0: none.
  double cores() const;
  /// The smallest limit in bytes; kNoLimit: none.
  std::int64_t memory_limit() const;
  /// Bytes left until the first limit is reached.
  std::int64_t memory_left() const;
  /// Processes of these cgroups that the kernel has killed because their memory was used up.
  std::int64_t memory_kills() const;

 private:
  std::vector<std::string> v2_, cpu_, memory_;  ///< folders, the innermost first
};

}  // namespace lockstep
