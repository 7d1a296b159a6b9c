// Requests to a server on this machine.
#pragma once

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

#include "core/socket_address.hpp"

/// A connection on which these bytes have been sent.
inline int http_begin(int port, const std::string& bytes, const std::string& address = "127.0.0.1") {
  const auto to = lockstep::socket_address(address, port);
  const int socket = ::socket(to->family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(socket, to->pointer(), to->length) == 0) {
    (void)::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  return socket;
}

/// The answer to a GET; "" where nobody listens.
inline std::string http_get(int port, const std::string& path, const std::string& address = "127.0.0.1") {
  const int socket = http_begin(port, fmt::format("GET {} HTTP/1.0\r\n\r\n", path), address);
  std::string answer;
  std::array<char, 4096> block{};
  for (ssize_t got = 0; (got = ::recv(socket, block.data(), block.size(), 0)) > 0;) {
    answer.append(block.data(), static_cast<std::size_t>(got));
  }
  ::close(socket);
  return answer;
}
