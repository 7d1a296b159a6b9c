// What RDMA needs of this host: devices that a process may open, and memory that it may lock.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

struct RdmaFacts {
  std::size_t devices = 0;
  std::int64_t lockable_bytes = 0;  ///< kNoLimit: any
  static constexpr std::int64_t kNoLimit = INT64_MAX;
};

/// `folder`: where devices are.
[[nodiscard]] RdmaFacts rdma_facts(const std::string& folder = "/dev/infiniband");
/// Why RDMA cannot be used on `host`, as a sentence; "" if it can.
[[nodiscard]] std::string rdma_problem(const RdmaFacts& facts, const std::string& host);
/// Whether ranks must have it: LOCKSTEP_RDMA=required, which the chart sets.
[[nodiscard]] bool is_rdma_required();

}  // namespace lockstep
