#include "launch/control_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "lockstep/error.hpp"

namespace lockstep::launch {

namespace {

constexpr int kBacklog = 1024;
constexpr int kMostEvents = 64;  // at a time; the others come next

[[noreturn]] void failed(const char* what) {
  throw Error(ExitCode::infrastructure, fmt::format("the control socket: cannot {}: {}", what, std::strerror(errno)));
}

// Of this machine, loopback last: a rank on another host must not find its own.
std::vector<std::string> own_addresses() {
  std::vector<std::string> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {"127.0.0.1"};
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    const auto* address = reinterpret_cast<const sockaddr_in*>(at->ifa_addr);
    std::array<char, INET_ADDRSTRLEN> text{};
    inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size());
    if (std::string(text.data()).rfind("127.", 0) != 0) found.emplace_back(text.data());
  }
  freeifaddrs(list);
  found.emplace_back("127.0.0.1");
  return found;
}

}  // namespace

ControlServer::ControlServer(std::string token, bool local) : token_(std::move(token)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener_ < 0) failed("make it");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(local ? INADDR_LOOPBACK : INADDR_ANY);
  if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) failed("bind it");
  if (listen(listener_, kBacklog) != 0) failed("listen");
  socklen_t length = sizeof address;
  if (getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0) failed("read its port");
  ready_ = epoll_create1(EPOLL_CLOEXEC);
  if (ready_ < 0) failed("watch it");
  watch(listener_, EPOLLIN);
  for (const auto& own : local ? std::vector<std::string>{"127.0.0.1"} : own_addresses()) {
    addresses_ += fmt::format("{}{}:{}", addresses_.empty() ? "" : ",", own, ntohs(address.sin_port));
  }
}

ControlServer::~ControlServer() {
  ::close(ready_);
  ::close(listener_);
}

void ControlServer::watch(int descriptor, std::uint32_t events) const {
  epoll_event event{};
  event.events = events;
  event.data.fd = descriptor;
  if (epoll_ctl(ready_, EPOLL_CTL_ADD, descriptor, &event) != 0) failed("watch it");
}

void ControlServer::accept_all() {
  while (true) {
    const int descriptor = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0) return;
    const int on = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connections_.push_back({ControlSocket(descriptor), -1});
    // By edges: a socket then enters the list when something comes, and not because something came before.
    watch(descriptor, EPOLLIN | EPOLLOUT | EPOLLET);
  }
}

void ControlServer::serve(ControlSocket& socket, int& rank, std::vector<RankMessage>& messages) {
  std::vector<std::string> lines;
  bool alive = socket.read_lines(lines);
  for (auto& line : lines) {
    RankMessage message{rank, take_word(line), ""};
    if (rank < 0) {
      if (message.word != "hello" || take_word(line) != token_) {
        alive = false;  // a port scanner, or a rank of an earlier attempt
        break;
      }
      rank = message.rank = static_cast<int>(take_number(line));
    }
    message.rest = line;
    messages.push_back(std::move(message));
  }
  if (alive) return;
  if (rank >= 0) messages.push_back({rank, "", ""});
  socket = ControlSocket();
}

std::vector<RankMessage> ControlServer::poll(std::chrono::milliseconds patience, int wake) {
  std::vector<RankMessage> messages;
  std::array<pollfd, 2> waiting = {{{ready_, POLLIN, 0}, {wake, POLLIN, 0}}};
  if (::poll(waiting.data(), waiting.size(), static_cast<int>(patience.count())) <= 0) return messages;
  std::array<epoll_event, kMostEvents> ready{};
  const int count = epoll_wait(ready_, ready.data(), kMostEvents, 0);
  for (int i = 0; i < count; ++i) {
    const int descriptor = ready.at(static_cast<std::size_t>(i)).data.fd;
    if (descriptor == listener_) {
      accept_all();
      continue;
    }
    const auto found = std::find_if(connections_.begin(), connections_.end(), [&](const Connection& connection) {
      return connection.socket.descriptor() == descriptor;
    });
    if (found == connections_.end()) continue;
    serve(found->socket, found->rank, messages);
    if (found->socket.open()) (void)found->socket.flush();
  }
  std::erase_if(connections_, [](const Connection& connection) { return !connection.socket.open(); });
  return messages;
}

void ControlServer::send(int rank, const std::string& line) {
  for (auto& connection : connections_) {
    if (connection.rank != rank || !connection.socket.open()) continue;
    connection.socket.queue(line);
    (void)connection.socket.flush();
  }
}

void ControlServer::send_all(const std::string& line) {
  for (auto& connection : connections_) {
    if (connection.rank < 0) continue;
    connection.socket.queue(line);
    (void)connection.socket.flush();
  }
}

}  // namespace lockstep::launch
