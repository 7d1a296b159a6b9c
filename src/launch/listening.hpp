// Where the control socket listens: only where the hosts of an attempt need it.
#pragma once

#include <string>
#include <vector>

#include "launch/hosts.hpp"

namespace lockstep::launch {

struct Listening {
  std::vector<std::string> addresses;  ///< for ranks to connect to, the best first
  bool all_interfaces = false;         ///< listens on all interfaces, not only at these addresses
  std::string warning;                 ///< why it listens on all interfaces if that was not requested
};

/// For ranks on this machine.
[[nodiscard]] Listening listening_on_loopback();

/// For ranks on these hosts: loopback if all are this machine; else the addresses that packets to the others are sent
/// from, according to this machine's routes. All interfaces if a host's name cannot be resolved here (an alias of ssh),
/// if there is no route, or if resolving takes longer than some seconds. `chosen`: the user's choice (--listen), an
/// address of this machine, 0.0.0.0 or ::; throws Error(usage) if it is not an IP address.
[[nodiscard]] Listening listening_for(const Hosts& hosts, const std::string& chosen);

/// The address that listens at all of these: ::, or 0.0.0.0 where none is of IPv6, which a kernel may not know.
[[nodiscard]] std::string all_interfaces(const std::vector<std::string>& addresses);
/// A socket that listens at the address (::, at those of IPv4 too), on a port chosen by the kernel. -1 with errno on
/// failure.
[[nodiscard]] int listen_at(const std::string& address);
[[nodiscard]] int port_of(int listener);

}  // namespace lockstep::launch
