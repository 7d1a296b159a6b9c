// Which part of its host's cores a rank may count on.
#pragma once

#include <span>
#include <vector>

#include "device/threads.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::comm {

/// By rank: of each core that it may use, an equal part with those ranks of its host that may use it too, but not more
/// than its part of its cgroup's quota; rounded down, at least 1. So ranks that are bound to cores of their own keep
/// them, and ranks that are not bound share all of them.
[[nodiscard]] std::vector<int> share_cores(std::span<const device::CoreLimits> of_ranks, std::span<const int> host_of);

/// A communicator whose ranks have told each other which cores they may use.
class SharesCores {
 public:
  SharesCores() = default;
  SharesCores(const SharesCores&) = delete;
  SharesCores& operator=(const SharesCores&) = delete;
  virtual ~SharesCores() = default;
  virtual int cores() const = 0;
};

/// This rank's share_cores(). Where ranks have not told each other, they are taken to have the same cores.
[[nodiscard]] int own_cores(const Communicator& communicator);

}  // namespace lockstep::comm
