#include "comm/transport/cores.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "comm/transport/group.hpp"

namespace lockstep::comm {

namespace {

struct Host {
  int ranks = 0;
  std::array<int, device::CoreLimits::kCores> users{};  ///< by core
};

}  // namespace

std::vector<int> share_cores(std::span<const device::CoreLimits> of_ranks, std::span<const int> host_of) {
  constexpr double kRounding = 1e-9;  // three thirds of a core are one
  std::map<int, Host> hosts;
  for (std::size_t r = 0; r < of_ranks.size(); ++r) {
    Host& host = hosts[host_of[r]];
    ++host.ranks;
    for (std::size_t core = 0; core < host.users.size(); ++core) host.users[core] += of_ranks[r].may_use(core) ? 1 : 0;
  }
  std::vector<int> shares;
  for (std::size_t r = 0; r < of_ranks.size(); ++r) {
    const Host& host = hosts[host_of[r]];
    double cores = 0;
    for (std::size_t core = 0; core < host.users.size(); ++core) {
      if (of_ranks[r].may_use(core)) cores += 1.0 / host.users[core];
    }
    if (of_ranks[r].quota > 0) cores = std::min(cores, of_ranks[r].quota / host.ranks);
    shares.push_back(std::max(1, static_cast<int>(cores + kRounding)));
  }
  return shares;
}

int own_cores(const Communicator& communicator) {
  if (const auto* const group = dynamic_cast<const GroupCommunicator*>(&communicator)) return own_cores(group->all());
  if (const auto* const shares = dynamic_cast<const SharesCores*>(&communicator)) return shares->cores();
  return std::max(1, device::available_cores() / communicator.topology().local_size(communicator.rank()));
}

}  // namespace lockstep::comm
