#include "comm/transport/file_server.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <random>
#include <utility>

#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

constexpr int kBacklog = 4096;  ///< enough for all ranks of a host that ask at once

[[noreturn]] void no_file_passed(const std::string& what) {
  throw Error(ExitCode::infrastructure, what);
}

FileHandle make_socket() {
  FileHandle made({socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)});
  if (!made) no_file_passed(fmt::format("cannot make a Unix socket: {}", std::strerror(errno)));
  return made;
}

struct Address {
  sockaddr_un value{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&value); }
};

// A leading zero byte makes the socket name an abstract one.
Address abstract_address(const std::string& name) {
  Address address;
  address.value.sun_family = AF_UNIX;
  const std::size_t size = std::min(name.size(), sizeof address.value.sun_path - 1);
  std::copy_n(name.begin(), size, address.value.sun_path + 1);
  address.length = offsetof(sockaddr_un, sun_path) + 1 + size;
  return address;
}

// Whether the other end of a connection belongs to this user.
bool is_own_user(const FileHandle& connection) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(connection.get().number, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

/// A one-byte message that carries an open file.
struct FileMessage {
  FileMessage() {
    header.msg_iov = &content;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  ~FileMessage() = default;
  FileMessage(const FileMessage&) = delete;
  FileMessage& operator=(const FileMessage&) = delete;
  std::byte byte{};
  iovec content{&byte, 1};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
};

void send_file(const FileHandle& connection, const FileHandle& file) {
  FileMessage message;
  cmsghdr* part = CMSG_FIRSTHDR(&message.header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  const int number = file.get().number;
  std::memcpy(CMSG_DATA(part), &number, sizeof number);
  // One message fits into the buffer of a new connection. If the peer is gone, the failure does not matter.
  (void)sendmsg(connection.get().number, &message.header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

FileHandle receive_file(const FileHandle& connection) {
  FileMessage message;
  ssize_t count = 0;
  do {
    count = recvmsg(connection.get().number, &message.header, MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  if (count < 0) no_file_passed(errno == EAGAIN ? "no answer in time" : std::strerror(errno));
  const cmsghdr* part = CMSG_FIRSTHDR(&message.header);
  if (part == nullptr || part->cmsg_type != SCM_RIGHTS || part->cmsg_len != CMSG_LEN(sizeof(int))) {
    no_file_passed("it ended without an answer");
  }
  int number = -1;
  std::memcpy(&number, CMSG_DATA(part), sizeof number);
  return FileHandle({number});
}

std::string fresh_name() {
  std::random_device random;
  return fmt::format("lockstep-{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace

void FileTraits::destroy(Value value) noexcept {
  ::close(value.number);
}

FileServer::FileServer(FileHandle file) : file_(std::move(file)), listener_(make_socket()), name_(fresh_name()) {
  const Address address = abstract_address(name_);
  if (bind(listener_.get().number, address.get(), address.length) != 0 ||
      listen(listener_.get().number, kBacklog) != 0) {
    no_file_passed(fmt::format("cannot listen on a Unix socket: {}", std::strerror(errno)));
  }
  thread_ = std::thread([this] { serve(); });
}

FileServer::~FileServer() {
  shutdown(listener_.get().number, SHUT_RDWR);  // makes accept() return
  thread_.join();
}

void FileServer::serve() const {
  while (true) {
    const FileHandle connection({accept4(listener_.get().number, nullptr, nullptr, SOCK_CLOEXEC)});
    if (connection) {
      if (is_own_user(connection)) send_file(connection, file_);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // until this process has closed some file
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

FileHandle fetch_file(const std::string& name, std::chrono::milliseconds timeout) {
  const FileHandle connection = make_socket();
  const auto limit = std::max(timeout, std::chrono::milliseconds(1));
  const timeval patience{limit.count() / 1000, limit.count() % 1000 * 1000};
  for (const int option : {SO_SNDTIMEO, SO_RCVTIMEO}) {  // SO_SNDTIMEO also limits connect()
    setsockopt(connection.get().number, SOL_SOCKET, option, &patience, sizeof patience);
  }
  const Address address = abstract_address(name);
  int result = 0;
  do {
    result = connect(connection.get().number, address.get(), address.length);
  } while (result != 0 && errno == EINTR);
  if (result != 0) no_file_passed(errno == EAGAIN ? "no answer in time" : std::strerror(errno));
  if (!is_own_user(connection)) no_file_passed("the process there is another user's");
  return receive_file(connection);
}

}  // namespace lockstep::comm
