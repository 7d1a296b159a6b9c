#include "launch/listening.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <thread>

#include "core/socket_address.hpp"
#include "lockstep/error.hpp"

namespace lockstep::launch {

namespace {

constexpr int kBacklog = 4096;
constexpr std::chrono::seconds kNamePatience{5};
constexpr const char* kLoopback = "127.0.0.1";
constexpr const char* kAll = "0.0.0.0";
constexpr const char* kAllOfBoth = "::";

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

// Those of one link need its name, which other hosts do not know.
bool is_known_elsewhere(const std::string& address) {
  return !address.empty() && address.find('%') == std::string::npos;
}

// This machine's addresses, loopback last.
std::vector<std::string> own_addresses() {
  std::vector<std::string> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {kLoopback};
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    const std::string text = at->ifa_addr == nullptr ? "" : ip_text(at->ifa_addr);
    if (is_known_elsewhere(text) && !is_loopback(text)) found.push_back(text);
  }
  freeifaddrs(list);
  std::stable_partition(found.begin(), found.end(), [](const auto& address) { return !is_ipv6(address); });
  found.emplace_back(kLoopback);
  return found;
}

struct Routes {
  std::vector<std::string> from;  ///< this machine's addresses
  std::string error;              ///< why there is none
};

// Connecting a datagram socket sends nothing, but gives it the address that the route uses.
void add_route(Routes& routes, const addrinfo& host) {
  const int probe = ::socket(host.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  SocketAddress own;
  own.length = sizeof own.storage;
  if (probe >= 0 && connect(probe, host.ai_addr, host.ai_addrlen) == 0 &&
      getsockname(probe, reinterpret_cast<sockaddr*>(&own.storage), &own.length) == 0) {
    if (std::string text = ip_text(own.pointer()); is_known_elsewhere(text)) routes.from.push_back(std::move(text));
  } else {
    routes.error = std::strerror(errno);
  }
  if (probe >= 0) ::close(probe);
}

// One for each of the host's addresses.
Routes routes_to(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), "9", &hints, &found); error != 0) return {{}, gai_strerror(error)};
  Routes routes;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) add_route(routes, *at);
  freeaddrinfo(found);
  return routes;
}

// If a name server does not answer, only a detached thread keeps waiting.
Listening listening_towards(const std::vector<std::string>& hosts) {
  auto answer = std::make_shared<std::promise<Listening>>();
  std::thread([answer, hosts] {
    Listening found;
    for (const auto& host : hosts) {
      const Routes routes = routes_to(host);
      if (routes.from.empty()) {
        found.warning = fmt::format("{}: {}", host, routes.error);
        break;
      }
      auto& known = found.addresses;
      for (const auto& from : routes.from) {
        if (std::find(known.begin(), known.end(), from) == known.end()) known.push_back(from);
      }
    }
    // Loopback last: a rank on another host must not connect to its own loopback.
    std::stable_partition(found.addresses.begin(), found.addresses.end(),
                          [](const auto& address) { return !is_loopback(address); });
    answer->set_value(found);
  }).detach();
  auto future = answer->get_future();
  if (future.wait_for(kNamePatience) == std::future_status::ready) return future.get();
  return {{}, false, fmt::format("the hosts' names took longer than {} s", kNamePatience.count())};
}

// Listens on all interfaces; ranks try `first` first.
Listening everywhere(std::vector<std::string> first, std::string warning) {
  for (auto& address : own_addresses()) {
    if (std::find(first.begin(), first.end(), address) == first.end()) first.push_back(std::move(address));
  }
  return {std::move(first), true, std::move(warning)};
}

/// Why it is not possible to listen there; empty: it is.
std::string trouble_at(const std::string& address) {
  const int listener = listen_at(address);
  if (listener < 0) return std::strerror(errno);
  ::close(listener);
  return "";
}

}  // namespace

Listening listening_on_loopback() {
  return {{kLoopback}, false, ""};
}

Listening listening_for(const Hosts& hosts, const std::string& chosen) {
  std::vector<std::string> others;
  for (const Host& host : hosts) {
    if (!is_local(host.name)) others.push_back(host.name);
  }
  if (!chosen.empty() && !socket_address(chosen, 0)) {
    throw Error(ExitCode::usage,
                fmt::format("--listen: expected an IP address of this machine, or {} or {} for all, found '{}'", kAll,
                            kAllOfBoth, chosen));
  }
  if (others.empty()) return listening_on_loopback();
  if (chosen == kAll || chosen == kAllOfBoth) return everywhere({}, "");
  if (!chosen.empty()) {
    const std::string trouble = trouble_at(chosen);
    if (trouble.empty()) return {{chosen}, false, ""};
    return everywhere({chosen}, fmt::format("the control socket listens on all interfaces of this host, which has no "
                                            "address {} (--listen): {}; the ranks use it nevertheless",
                                            chosen, trouble));
  }
  Listening found = listening_towards(others);
  if (found.warning.empty()) return found;
  return everywhere({}, fmt::format("the control socket listens on all interfaces of this host, since the address by "
                                    "which the other hosts reach it is not known: {}; set it by --listen ADDRESS",
                                    found.warning));
}

std::string all_interfaces(const std::vector<std::string>& addresses) {
  return std::any_of(addresses.begin(), addresses.end(), is_ipv6) ? kAllOfBoth : kAll;
}

int listen_at(const std::string& address) {
  const auto place = socket_address(address, 0);
  if (!place) {
    errno = EADDRNOTAVAIL;
    return -1;
  }
  const int listener = ::socket(place->family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener < 0) return -1;
  const int no = 0;
  if (place->family() == AF_INET6) setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  if (bind(listener, place->pointer(), place->length) == 0 && listen(listener, kBacklog) == 0) return listener;
  const int error = errno;
  ::close(listener);
  errno = error;
  return -1;
}

int port_of(int listener) {
  SocketAddress address;
  address.length = sizeof address.storage;
  const bool known = getsockname(listener, reinterpret_cast<sockaddr*>(&address.storage), &address.length) == 0;
  return known ? port_in(address) : -1;
}

}  // namespace lockstep::launch
