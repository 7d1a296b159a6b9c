#include "launch/control_server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/digest.hpp"
#include "core/socket_address.hpp"
#include "launch/processes.hpp"
#include "lockstep/error.hpp"

namespace lockstep::launch {

namespace {

constexpr int kMaxEvents = 1024;             ///< per poll; the others follow in the next one
constexpr rlim_t kOtherFiles = 64;           ///< other open files of this process: logs, mpirun, agents
constexpr std::size_t kLongestHello = 1024;  ///< bytes; a host's name has at most 255
constexpr std::chrono::seconds kHelloPatience{10};
constexpr std::size_t kMaxUnidentified = 1024;  ///< connections without a hello at the same time
constexpr std::chrono::seconds kUnidentifiedCheckPeriod{1};

[[noreturn]] void failed(const char* what) {
  throw Error(ExitCode::infrastructure, fmt::format("the control socket: cannot {}: {}", what, std::strerror(errno)));
}

// There is one connection per rank; the usual limit of 1,024 open files is a soft one.
void make_room_for(int ranks) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) failed("read the limit of open files");
  const rlim_t wanted = ranks + kOtherFiles;
  if (files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    (void)getrlimit(RLIMIT_NOFILE, &files);
  }
  if (files.rlim_cur >= wanted) return;
  throw Error(ExitCode::usage,
              fmt::format("launch: expected a limit of at least {} open files, one for each of {} ranks and some more, "
                          "found {}; raise it (ulimit -Hn, LimitNOFILE= of the service), or start fewer ranks",
                          wanted, ranks, files.rlim_cur));
}

int spare_descriptor() {
  return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

}  // namespace

ControlServer::ControlServer(std::string token, int ranks, const Listening& where) : token_(std::move(token)) {
  make_room_for(ranks);
  reserve_ = spare_descriptor();
  ready_ = epoll_create1(EPOLL_CLOEXEC);
  if (ready_ < 0) failed("watch it");
  if (where.all_interfaces) listen(all_interfaces(where.addresses));
  for (const auto& address : where.addresses) {
    if (!where.all_interfaces) listen(address);
    addresses_ += (addresses_.empty() ? "" : ",") + endpoint_text(address, port_of(listeners_.back()));
  }
}

ControlServer::~ControlServer() {
  ::close(ready_);
  for (const int listener : listeners_) ::close(listener);
  if (reserve_ >= 0) ::close(reserve_);
}

void ControlServer::listen(const std::string& address) {
  const int listener = listen_at(address);
  if (listener < 0) failed("listen");
  listeners_.push_back(listener);
  watch(listener, EPOLLIN);
}

void ControlServer::watch(int descriptor, std::uint32_t events) const {
  epoll_event event{};
  event.events = events;
  event.data.fd = descriptor;
  if (epoll_ctl(ready_, EPOLL_CTL_ADD, descriptor, &event) != 0) failed("watch it");
}

void ControlServer::accept_all(int listener) {
  while (true) {
    int descriptor = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0 && (errno == EMFILE || errno == ENFILE) && reserve_ >= 0) {
      // If it stayed in the queue, it would wake this loop again and again; so accept and close it.
      ::close(reserve_);
      descriptor = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (descriptor >= 0) ::close(descriptor);
      reserve_ = spare_descriptor();
      if (descriptor < 0) return;
      continue;
    }
    if (descriptor < 0) return;
    const int on = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Connection& connection = connections_[descriptor];
    connection.socket = ControlSocket(descriptor);
    connection.challenge = random_hex();
    connection.socket.queue("challenge " + connection.challenge);
    (void)connection.socket.flush();
    ++unidentified_;
    // Edge-triggered: a socket enters the list when something new arrives, not because of earlier data.
    watch(descriptor, EPOLLIN | EPOLLOUT | EPOLLET);
    if (unidentified_ > kMaxUnidentified) drop_unidentified();
  }
}

void ControlServer::close(int descriptor) {
  const auto found = connections_.find(descriptor);
  if (found == connections_.end()) return;
  const int rank = found->second.rank;
  if (rank < 0) --unidentified_;
  if (const auto own = descriptor_of_.find(rank); own != descriptor_of_.end() && own->second == descriptor) {
    descriptor_of_.erase(own);
  }
  connections_.erase(found);
}

// A connection without a hello occupies a descriptor, so it is closed after kHelloPatience. If there are too many, the
// oldest are closed at once.
void ControlServer::drop_unidentified() {
  checked_unidentified_ = Clock::now();
  std::vector<std::pair<Clock::time_point, int>> unidentified;
  for (const auto& [descriptor, connection] : connections_) {
    if (connection.rank < 0) unidentified.emplace_back(connection.since, descriptor);
  }
  std::sort(unidentified.begin(), unidentified.end());
  for (const auto& [since, descriptor] : unidentified) {
    if (Clock::now() - since < kHelloPatience && unidentified_ <= kMaxUnidentified) return;
    close(descriptor);
  }
}

void ControlServer::serve(Connection& connection, std::vector<RankMessage>& messages) {
  ControlSocket& socket = connection.socket;
  bool alive = true, again = true;
  while (alive && again) {
    const bool unidentified = connection.rank < 0;
    std::vector<std::string> lines;
    alive = socket.read_lines(lines, unidentified ? kLongestHello : ControlSocket::kLongestLine);
    for (auto& line : lines) {
      if (connection.rank < 0 && !identify(connection, line)) {
        alive = false;  // a port scanner, or a rank of an earlier attempt
        break;
      }
      RankMessage message{connection.rank, take_word(line), ""};
      message.rest = line;
      messages.push_back(std::move(message));
    }
    again = unidentified && connection.rank >= 0;  // data after the hello may be longer than a hello
  }
  if (alive) {
    (void)socket.flush();
    return;
  }
  if (connection.rank >= 0) messages.push_back({connection.rank, "", ""});
  close(socket.descriptor());
}

// "hello PROOF RANK ..." identifies the connection as rank RANK's; leaves "hello ..." in the line.
bool ControlServer::identify(Connection& connection, std::string& line) {
  if (take_word(line) != "hello" || take_word(line) != hmac_sha256(token_, connection.challenge)) return false;
  connection.rank = take_number(line);
  if (connection.rank < 0) return false;
  descriptor_of_[connection.rank] = connection.socket.descriptor();
  --unidentified_;
  line.insert(0, "hello ");
  return true;
}

std::vector<RankMessage> ControlServer::poll(std::chrono::milliseconds patience, int wake) {
  std::vector<RankMessage> messages;
  if (Clock::now() - checked_unidentified_ >= kUnidentifiedCheckPeriod) drop_unidentified();
  std::array<pollfd, 2> waiting = {{{ready_, POLLIN, 0}, {wake, POLLIN, 0}}};
  if (::poll(waiting.data(), waiting.size(), static_cast<int>(patience.count())) <= 0) return messages;
  std::array<epoll_event, kMaxEvents> ready{};
  const int count = epoll_wait(ready_, ready.data(), kMaxEvents, 0);
  for (int i = 0; i < count; ++i) {
    const int descriptor = ready.at(i).data.fd;
    if (std::find(listeners_.begin(), listeners_.end(), descriptor) != listeners_.end()) {
      accept_all(descriptor);
    } else if (const auto found = connections_.find(descriptor); found != connections_.end()) {
      serve(found->second, messages);
    }
  }
  return messages;
}

void ControlServer::send(int rank, const std::string& line) {
  const auto descriptor = descriptor_of_.find(rank);
  if (descriptor == descriptor_of_.end()) return;
  ControlSocket& socket = connections_.at(descriptor->second).socket;
  socket.queue(line);
  (void)socket.flush();
}

void ControlServer::send_all(const std::string& line) {
  for (const auto& [rank, descriptor] : descriptor_of_) {
    ControlSocket& socket = connections_.at(descriptor).socket;
    socket.queue(line);
    (void)socket.flush();
  }
}

}  // namespace lockstep::launch
