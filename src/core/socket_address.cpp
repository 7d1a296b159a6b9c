#include "core/socket_address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <cstdlib>

namespace lockstep {

std::optional<SocketAddress> socket_address(const std::string& address, int port) {
  SocketAddress to;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&to.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&to.storage);
  if (inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<std::uint16_t>(port));
    to.length = sizeof *v4;
  } else if (inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<std::uint16_t>(port));
    to.length = sizeof *v6;
  } else {
    return std::nullopt;
  }
  return to;
}

std::optional<SocketAddress> parse_endpoint(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  std::string address = text.substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']')) address = address.substr(1, address.size() - 2);
  return socket_address(address, std::atoi(text.c_str() + colon + 1));
}

std::string ip_text(const sockaddr* address) {
  const bool v4 = address->sa_family == AF_INET;
  if (!v4 && address->sa_family != AF_INET6) return "";
  std::array<char, NI_MAXHOST> text{};
  const socklen_t size = v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  const int failed = getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return failed == 0 ? text.data() : "";
}

int port_in(const SocketAddress& address) {
  if (address.family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
  if (address.family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port);
  return 0;
}

std::string endpoint_text(const std::string& address, int port) {
  return is_ipv6(address) ? fmt::format("[{}]:{}", address, port) : fmt::format("{}:{}", address, port);
}

}  // namespace lockstep
