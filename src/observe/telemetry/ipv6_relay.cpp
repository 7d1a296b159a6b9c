#include "observe/telemetry/ipv6_relay.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/socket_address.hpp"

namespace lockstep::telemetry {

namespace {

constexpr std::size_t kMaxConnections = 64;  // scrapers are few; others wait in the kernel's queue
constexpr int kTick = 100;                   // milliseconds

// Two ends of a connection, and what has been read from each for the other.
class RelayedConnection {
 public:
  RelayedConnection(int visitor, int server) : ends_{visitor, server} {}
  ~RelayedConnection() {
    for (const int end : ends_) {
      if (end >= 0) ::close(end);
    }
  }
  RelayedConnection(RelayedConnection&& other) noexcept
      : ends_(std::exchange(other.ends_, {-1, -1})), read_(std::move(other.read_)) {}
  RelayedConnection& operator=(RelayedConnection&& other) noexcept {
    std::swap(ends_, other.ends_);
    std::swap(read_, other.read_);
    return *this;
  }
  RelayedConnection(const RelayedConnection&) = delete;
  RelayedConnection& operator=(const RelayedConnection&) = delete;

  pollfd waits_for(std::size_t end) const {
    const int wants = (read_[end].empty() ? POLLIN : 0) | (read_[1 - end].empty() ? 0 : POLLOUT);
    return {ends_[end], static_cast<short>(wants), 0};  // NOLINT: poll's type
  }
  /// Returns false when either end has closed.
  [[nodiscard]] bool pass_on(std::size_t end, int events) {
    if ((events & POLLIN) != 0) {
      std::array<char, 16384> block{};
      const ssize_t count = ::recv(ends_[end], block.data(), block.size(), 0);
      if (count <= 0) return false;
      read_[end].assign(block.data(), count);
    }
    if ((events & POLLOUT) != 0) {
      std::string& text = read_[1 - end];
      const ssize_t count = ::send(ends_[end], text.data(), text.size(), MSG_NOSIGNAL);
      if (count < 0) return errno == EAGAIN;
      text.erase(0, count);
    }
    return (events & (POLLERR | POLLNVAL)) == 0 && events != POLLHUP;
  }

 private:
  std::array<int, 2> ends_;
  std::array<std::string, 2> read_;
};

int connect_to_loopback(int port) {
  const auto place = socket_address("127.0.0.1", port);
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (server < 0 || ::connect(server, place->pointer(), place->length) == 0) return server;
  ::close(server);
  return -1;
}

}  // namespace

Ipv6Relay::Ipv6Relay(const std::string& address, int port) {
  const auto place = socket_address(address, port);
  listener_ = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;
  const bool listens = place && listener_ >= 0 &&
                       setsockopt(listener_, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes) == 0 &&
                       setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                       ::bind(listener_, place->pointer(), place->length) == 0 && ::listen(listener_, SOMAXCONN) == 0;
  if (!listens) {
    const std::string problem = std::strerror(errno);
    if (listener_ >= 0) ::close(listener_);
    throw std::runtime_error(problem);
  }
  thread_ = std::thread([this, port] { serve(port); });
}

Ipv6Relay::~Ipv6Relay() {
  over_ = true;
  thread_.join();
  ::close(listener_);
}

void Ipv6Relay::serve(int port) const {
  std::vector<RelayedConnection> connections;
  while (!over_) {
    std::vector<pollfd> waiting;
    for (const auto& connection : connections) {
      for (const std::size_t end : {0U, 1U}) waiting.push_back(connection.waits_for(end));
    }
    if (connections.size() < kMaxConnections) waiting.push_back({listener_, POLLIN, 0});
    ::poll(waiting.data(), waiting.size(), kTick);
    for (std::size_t i = connections.size(); i-- > 0;) {
      const bool goes_on =
          connections[i].pass_on(0, waiting[2 * i].revents) && connections[i].pass_on(1, waiting[2 * i + 1].revents);
      if (!goes_on) connections.erase(connections.begin() + i);
    }
    if (connections.size() >= kMaxConnections) continue;
    const int visitor = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (visitor < 0) continue;
    const int server = connect_to_loopback(port);
    if (server < 0) {
      ::close(visitor);
    } else {
      connections.emplace_back(visitor, server);
    }
  }
}

}  // namespace lockstep::telemetry
