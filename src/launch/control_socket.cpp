#include "launch/control_socket.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "core/socket_address.hpp"

namespace lockstep::launch {

namespace {

bool connect_within(int descriptor, const SocketAddress& address, std::chrono::milliseconds patience) {
  if (::connect(descriptor, address.pointer(), address.length) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd writable{descriptor, POLLOUT, 0};
  if (::poll(&writable, 1, static_cast<int>(patience.count())) <= 0) return false;
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0;
}

ControlSocket connect_to(const std::string& place, std::chrono::milliseconds patience) {
  const auto address = parse_endpoint(place);
  if (!address) return {};
  ControlSocket socket(::socket(address->family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.open() || !connect_within(socket.descriptor(), *address, patience)) return {};
  const int on = 1;
  setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

}  // namespace

ControlSocket& ControlSocket::operator=(ControlSocket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(received_, other.received_);
  std::swap(to_send_, other.to_send_);
  return *this;
}

ControlSocket::~ControlSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

ControlSocket ControlSocket::connect(const std::string& addresses, std::chrono::milliseconds patience) {
  std::istringstream places(addresses);
  for (std::string place; std::getline(places, place, ',');) {
    if (auto socket = connect_to(place, patience); socket.open()) return socket;
  }
  return {};
}

void ControlSocket::queue(std::string_view line) {
  to_send_.append(line);
  to_send_ += '\n';
}

bool ControlSocket::flush() {
  while (!to_send_.empty()) {
    const ssize_t count = ::send(descriptor_, to_send_.data(), to_send_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    to_send_.erase(0, count);
  }
  return true;
}

bool ControlSocket::read_lines(std::vector<std::string>& lines, std::size_t longest) {
  bool alive = true;
  while (received_.size() <= longest) {
    std::array<char, 16384> block{};
    const ssize_t count = ::recv(descriptor_, block.data(), block.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      alive = count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
      break;
    }
    received_.append(block.data(), count);
  }
  std::size_t begin = 0;
  for (auto end = received_.find('\n'); end != std::string::npos; end = received_.find('\n', begin)) {
    lines.push_back(received_.substr(begin, end - begin));
    begin = end + 1;
  }
  received_.erase(0, begin);
  return alive && (received_.size() <= longest || begin > 0);
}

std::string take_word(std::string& rest) {
  const auto space = rest.find(' ');
  std::string word = rest.substr(0, space);
  rest.erase(0, space == std::string::npos ? rest.size() : space + 1);
  return word;
}

std::int64_t take_number(std::string& rest) {
  return std::atoll(take_word(rest).c_str());
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string packed_lines(std::string text) {
  std::replace(text.begin(), text.end(), '\n', '\v');
  return text;
}

std::string unpacked_lines(std::string text) {
  std::replace(text.begin(), text.end(), '\v', '\n');
  return text;
}

}  // namespace lockstep::launch
