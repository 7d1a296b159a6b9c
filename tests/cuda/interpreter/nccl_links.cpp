#include "cuda/interpreter/nccl_links.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace lockstep::ptx {

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 16;

/// An abstract socket name, which is no file: the first byte is 0.
struct SocketName {
  sockaddr_un address{};
  socklen_t length = 0;
  SocketName(const std::string& group, int rank) {
    const std::string text = fmt::format("{}.{}", group, rank);
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, text.data(), std::min(text.size(), sizeof address.sun_path - 1));
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Socket new_socket() {
  return Socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

bool is_for_later(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

Socket::Socket(Socket&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

Socket::~Socket() {
  if (is_open()) ::close(number_);
}

std::string Frame::text() const {
  switch (kind) {
    case FrameKind::message:
      return fmt::format("a message of {} elements", count);
    case FrameKind::gather:
      return fmt::format("collective {}, ncclAllGather of {} elements", number, count);
    case FrameKind::broadcast:
      return fmt::format("collective {}, ncclBroadcast of {} elements of rank {}", number, count, root);
    case FrameKind::sum:
      return fmt::format("collective {}, ncclAllReduce of {} elements", number, count);
    default:
      return "no message";
  }
}

void Link::send(const Frame& frame, const u8* bytes) {
  const auto* const head = reinterpret_cast<const u8*>(&frame);
  outbox_.insert(outbox_.end(), head, head + sizeof frame);
  if (frame.bytes > 0) outbox_.insert(outbox_.end(), bytes, bytes + frame.bytes);
  if (frame.kind != FrameKind::taken && frame.kind != FrameKind::goodbye && frame.kind != FrameKind::hello) ++sent_;
}

void Link::go_on() {
  if (lost_) return;
  write_out();
  read_in();
  parse();
}

void Link::write_out() {
  std::size_t done = 0;
  while (done < outbox_.size()) {
    const ssize_t count = ::send(socket_.number(), outbox_.data() + done, outbox_.size() - done, MSG_NOSIGNAL);
    if (count > 0) {
      done += static_cast<std::size_t>(count);
    } else {
      if (!is_for_later(errno)) lost_ = true;
      break;
    }
  }
  outbox_.erase(outbox_.begin(), outbox_.begin() + static_cast<std::ptrdiff_t>(done));
}

// Also after a failed write: data that the other rank sent before it ended are still there.
void Link::read_in() {
  std::array<u8, kPiece> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init): recv writes what is read
  while (true) {
    const ssize_t count = ::recv(socket_.number(), piece.data(), piece.size(), 0);
    if (count > 0) {
      partial_.insert(partial_.end(), piece.begin(), piece.begin() + count);
      continue;
    }
    if (count == 0 || !is_for_later(errno)) lost_ = true;
    return;
  }
}

void Link::parse() {
  std::size_t at = 0;
  Frame frame;
  while (partial_.size() - at >= sizeof frame) {
    std::memcpy(&frame, partial_.data() + at, sizeof frame);
    if (partial_.size() - at - sizeof frame < frame.bytes) break;
    const auto first = partial_.begin() + static_cast<std::ptrdiff_t>(at + sizeof frame);
    const auto last = first + static_cast<std::ptrdiff_t>(frame.bytes);
    at += sizeof frame + frame.bytes;
    if (frame.kind == FrameKind::taken) {
      ++taken_;
    } else if (frame.kind == FrameKind::goodbye) {
      goodbye_ = true;
    } else {
      inbox_.push_back({frame, {first, last}});
    }
  }
  partial_.erase(partial_.begin(), partial_.begin() + static_cast<std::ptrdiff_t>(at));
}

std::optional<Arrived> Link::take() {
  if (inbox_.empty()) return std::nullopt;
  Arrived arrived = std::move(inbox_.front());
  inbox_.pop_front();
  if (arrived.frame.kind != FrameKind::hello) {
    send({.kind = FrameKind::taken}, nullptr);
    write_out();  // the other rank waits for it, and this one may do something else next
  }
  return arrived;
}

Meeting::Meeting(std::string name, int rank, const Introduction& own)
    : name_(std::move(name)), rank_(rank), own_(own), listener_(new_socket()), links_(own.ranks), known_(own.ranks) {
  known_[static_cast<std::size_t>(rank)] = true;
  const SocketName address(name_, rank);
  if (::bind(listener_.number(), address.get(), address.length) != 0 ||
      ::listen(listener_.number(), static_cast<int>(own.ranks)) != 0) {
    wrong_ = fmt::format("rank {} of {} ranks has already checked in", rank, own.ranks);
  }
}

bool Meeting::go_on() {
  for (int other = 0; other < rank_ && wrong_.empty(); ++other) {
    if (links_[static_cast<std::size_t>(other)] == nullptr) call(other);
  }
  answer();
  hear();
  return wrong_.empty() && std::find(known_.begin(), known_.end(), false) == known_.end();
}

void Meeting::call(int rank) {
  Socket socket = new_socket();
  const SocketName address(name_, rank);
  if (::connect(socket.number(), address.get(), address.length) != 0) return;  // it does not listen yet
  auto& link = links_[static_cast<std::size_t>(rank)] = std::make_unique<Link>(std::move(socket));
  link->send({.kind = FrameKind::hello, .number = static_cast<u64>(rank_), .bytes = sizeof own_},
             reinterpret_cast<const u8*>(&own_));
}

void Meeting::answer() {
  while (true) {
    Socket socket(::accept4(listener_.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.is_open()) return;
    auto link = std::make_unique<Link>(std::move(socket));
    link->send({.kind = FrameKind::hello, .number = static_cast<u64>(rank_), .bytes = sizeof own_},
               reinterpret_cast<const u8*>(&own_));
    unnamed_.push_back(std::move(link));
  }
}

// Each rank hears all others, so that each of them finds what does not match.
void Meeting::hear() {
  const auto meets = [&](Link& link) -> std::optional<std::size_t> {
    link.go_on();
    const auto arrived = link.take();
    if (!arrived) return std::nullopt;
    Introduction other;
    std::memcpy(&other, arrived->bytes.data(), sizeof other);
    if (other.ranks != own_.ranks) {
      wrong_ = fmt::format("mismatch in rank count, {} here and {} on rank {}", own_.ranks, other.ranks,
                           arrived->frame.number);
    } else if (other.device == own_.device && std::strcmp(other.host, own_.host) == 0) {
      wrong_ = fmt::format("Duplicate GPU detected : rank {} and rank {} both on CUDA device {} of {}", rank_,
                           arrived->frame.number, own_.device, own_.host);
    }
    if (!wrong_.empty()) return std::nullopt;
    known_[arrived->frame.number] = true;
    return arrived->frame.number;
  };
  for (std::size_t rank = 0; rank < links_.size(); ++rank) {
    if (links_[rank] != nullptr && !known_[rank]) (void)meets(*links_[rank]);
  }
  for (auto& link : unnamed_) {
    if (const auto rank = meets(*link)) links_[*rank] = std::move(link);
  }
  std::erase(unnamed_, nullptr);
}

}  // namespace lockstep::ptx
