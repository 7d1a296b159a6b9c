// Where the control socket listens: no wider than the hosts of an attempt need.
#pragma once

#include <string>
#include <vector>

#include "launch/hosts.hpp"

namespace lockstep::launch {

struct Listening {
  std::vector<std::string> addresses;  ///< IPv4, for ranks to connect to, the best first
  bool all_interfaces = false;         ///< it accepts connections on all of them, not only at these addresses
  std::string warning;                 ///< why it listens on all, where that was not asked for
};

/// For ranks of this machine.
[[nodiscard]] Listening listening_on_loopback();

/// For ranks on these hosts: loopback where all are this machine; else the addresses that packets to the others leave
/// from, by the routes of this machine. All interfaces where a host's name cannot be resolved here (an alias of
/// ssh), where there is no route, and where resolving takes longer than some seconds. `chosen`: the user's choice
/// (--listen), an address of this machine or 0.0.0.0; throws Error(usage) where it is not an IPv4 address.
[[nodiscard]] Listening listening_for(const Hosts& hosts, const std::string& chosen);

/// A socket that listens at the address, on a port that the kernel chooses. -1 with errno on failure.
[[nodiscard]] int listen_at(const std::string& address);
[[nodiscard]] int port_of(int listener);

}  // namespace lockstep::launch
