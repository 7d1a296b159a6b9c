// Requests to a server on this machine.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

/// A connection on which these bytes have been sent.
inline int http_begin(int port, const std::string& bytes) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) {
    (void)::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  return socket;
}

/// The answer to a GET; "" where nobody listens.
inline std::string http_get(int port, const std::string& path) {
  const int socket = http_begin(port, fmt::format("GET {} HTTP/1.0\r\n\r\n", path));
  std::string answer;
  std::array<char, 4096> block{};
  for (ssize_t got = 0; (got = ::recv(socket, block.data(), block.size(), 0)) > 0;) {
    answer.append(block.data(), static_cast<std::size_t>(got));
  }
  ::close(socket);
  return answer;
}
