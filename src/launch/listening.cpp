#include "launch/listening.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <thread>

#include "lockstep/error.hpp"

namespace lockstep::launch {

namespace {

constexpr int kBacklog = 4096;
constexpr std::chrono::seconds kNamePatience{5};
constexpr const char* kLoopback = "127.0.0.1";
constexpr const char* kAll = "0.0.0.0";

std::string text_of(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return text.data();
}

// This machine's addresses, loopback last.
std::vector<std::string> own_addresses() {
  std::vector<std::string> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {kLoopback};
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    const std::string text = text_of(*reinterpret_cast<const sockaddr_in*>(at->ifa_addr));
    if (!text.starts_with("127.")) found.push_back(text);
  }
  freeifaddrs(list);
  found.emplace_back(kLoopback);
  return found;
}

struct Route {
  std::string from;   ///< this machine's address
  std::string error;  ///< why there is none
};

// Connecting a datagram socket sends nothing, but gives it the address that the route uses.
Route route_to(const sockaddr_in& host) {
  const int probe = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return {"", std::strerror(errno)};
  sockaddr_in own{};
  socklen_t length = sizeof own;
  Route route;
  if (connect(probe, reinterpret_cast<const sockaddr*>(&host), sizeof host) == 0 &&
      getsockname(probe, reinterpret_cast<sockaddr*>(&own), &length) == 0) {
    route.from = text_of(own);
  } else {
    route.error = std::strerror(errno);
  }
  ::close(probe);
  return route;
}

Route route_to(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), "9", &hints, &found); error != 0) return {"", gai_strerror(error)};
  sockaddr_in address{};
  std::memcpy(&address, found->ai_addr, sizeof address);
  freeaddrinfo(found);
  return route_to(address);
}

// If a name server does not answer, only a detached thread keeps waiting.
Listening listening_towards(const std::vector<std::string>& hosts) {
  auto answer = std::make_shared<std::promise<Listening>>();
  std::thread([answer, hosts] {
    Listening found;
    for (const auto& host : hosts) {
      const Route route = route_to(host);
      if (route.from.empty()) {
        found.warning = fmt::format("{}: {}", host, route.error);
        break;
      }
      auto& known = found.addresses;
      if (std::find(known.begin(), known.end(), route.from) == known.end()) known.push_back(route.from);
    }
    // Loopback last: a rank on another host must not connect to its own loopback.
    std::stable_partition(found.addresses.begin(), found.addresses.end(),
                          [](const auto& address) { return !address.starts_with("127."); });
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
  in_addr parsed{};
  if (!chosen.empty() && inet_pton(AF_INET, chosen.c_str(), &parsed) != 1) {
    throw Error(
        ExitCode::usage,
        fmt::format("--listen: expected an IPv4 address of this machine, or {} for all, found '{}'", kAll, chosen));
  }
  if (others.empty()) return listening_on_loopback();
  if (chosen == kAll) return everywhere({}, "");
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

int listen_at(const std::string& address) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener < 0) return -1;
  sockaddr_in place{};
  place.sin_family = AF_INET;
  if (inet_pton(AF_INET, address.c_str(), &place.sin_addr) == 1 &&
      bind(listener, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0 && listen(listener, kBacklog) == 0) {
    return listener;
  }
  const int error = errno;
  ::close(listener);
  errno = error;
  return -1;
}

int port_of(int listener) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  return getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0 ? ntohs(address.sin_port) : -1;
}

}  // namespace lockstep::launch
