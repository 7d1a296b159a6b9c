#include "launch/control_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
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
  for (const auto& own : local ? std::vector<std::string>{"127.0.0.1"} : own_addresses()) {
    addresses_ += fmt::format("{}{}:{}", addresses_.empty() ? "" : ",", own, ntohs(address.sin_port));
  }
}

ControlServer::~ControlServer() {
  if (listener_ >= 0) ::close(listener_);
}

void ControlServer::accept_all() {
  while (true) {
    const int descriptor = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0) return;
    const int on = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connections_.push_back({ControlSocket(descriptor), -1});
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
  std::vector<pollfd> waiting = {{listener_, POLLIN, 0}, {wake, POLLIN, 0}};
  for (auto& connection : connections_) {
    const auto also_write = static_cast<short>(connection.socket.wants_to_write() ? POLLOUT : 0);
    waiting.push_back({connection.socket.descriptor(), static_cast<short>(POLLIN | also_write), 0});
  }
  std::vector<RankMessage> messages;
  if (::poll(waiting.data(), waiting.size(), static_cast<int>(patience.count())) <= 0) return messages;
  for (std::size_t i = 2; i < waiting.size(); ++i) {
    Connection& connection = connections_[i - 2];
    if (waiting[i].revents != 0) serve(connection.socket, connection.rank, messages);
    if (connection.socket.open()) (void)connection.socket.flush();
  }
  std::erase_if(connections_, [](const Connection& connection) { return !connection.socket.open(); });
  if (waiting[0].revents != 0) accept_all();
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
