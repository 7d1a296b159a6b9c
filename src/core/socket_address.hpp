// Numeric addresses of IPv4 and IPv6, and the text of an address with a port: "10.0.0.1:80", "[fd00::1]:80".
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>

namespace lockstep {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  int family() const { return storage.ss_family; }
  const sockaddr* pointer() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// Nullopt if `address` is not an IP address.
[[nodiscard]] std::optional<SocketAddress> socket_address(const std::string& address, int port);
/// The same of "ADDRESS:PORT", as endpoint_text() writes it.
[[nodiscard]] std::optional<SocketAddress> parse_endpoint(const std::string& text);
/// "" if it is not an IP address.
[[nodiscard]] std::string ip_text(const sockaddr* address);
/// 0 if it is not an IP address.
[[nodiscard]] int port_in(const SocketAddress& address);

[[nodiscard]] inline bool is_ipv6(const std::string& address) {
  return address.find(':') != std::string::npos;
}
[[nodiscard]] std::string endpoint_text(const std::string& address, int port);

}  // namespace lockstep
