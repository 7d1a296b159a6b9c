// Where the control socket listens: only where the hosts of an attempt need it.
#pragma once

#include <string>
#include <vector>

#include "launch/hosts.hpp"

namespace lockstep::launch {

struct Listening {
  std::vector<std::string> addresses;  ///< IPv4 addresses for ranks to connect to, the best first
  bool all_interfaces = false;         ///< listens on all interfaces, not only at these addresses
  std::string warning;                 ///< why it listens on all interfaces if that was not requested
};

/// For ranks on this machine.
[[nodiscard]] Listening listening_on_loopback();

/// For ranks on these hosts: loopback if all are this machine; else the addresses that packets to the others are sent
/// from, according to this machine's routes. All interfaces if a host's name cannot be resolved here (an alias of ssh),
/// if there is no route, or if resolving takes longer than some seconds. `chosen`: the user's choice (--listen), an
/// address of this machine or 0.0.0.0; throws Error(usage) if it is not an IPv4 address.
[[nodiscard]] Listening listening_for(const Hosts& hosts, const std::string& chosen);

/// A socket that listens at the address, on a port chosen by the kernel. -1 with errno on failure.
[[nodiscard]] int listen_at(const std::string& address);
[[nodiscard]] int port_of(int listener);

}  // namespace lockstep::launch
