// Ranks of the stand-in for NCCL, and the bytes between them: a Unix socket for each two, which live in no folder and
// end with their process. Nothing waits: what can be sent or has come is seen to when somebody calls.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuda/interpreter/types.hpp"

namespace lockstep::ptx {

/// A file descriptor that is closed.
class Socket {
 public:
  explicit Socket(int number = -1) : number_(number) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

enum class FrameKind : u32 { hello, message, gather, broadcast, sum, taken, goodbye };

/// Before each row of bytes.
struct Frame {
  FrameKind kind = FrameKind::message;
  u32 root = 0;    ///< of a broadcast
  u64 number = 0;  ///< of a collective among those of its communicator; of a hello: the rank
  u64 count = 0;   ///< of elements
  u64 bytes = 0;   ///< that follow

  /// "collective 3, ncclBroadcast of 40 elements of rank 1", as its sender called it.
  [[nodiscard]] std::string text() const;
};

struct Arrived {
  Frame frame;
  std::vector<u8> bytes;
};

/// The way to one other rank and back.
class Link {
 public:
  explicit Link(Socket socket) : socket_(std::move(socket)) {}

  void send(const Frame& frame, const u8* bytes);
  /// Sends and receives what is possible now.
  void go_on();
  /// The next that has come, whose sender is told that it was taken.
  std::optional<Arrived> take();
  [[nodiscard]] const Arrived* next() const { return inbox_.empty() ? nullptr : &inbox_.front(); }

  [[nodiscard]] u64 sent() const { return sent_; }
  [[nodiscard]] u64 taken() const { return taken_; }  ///< of those sent, by the other rank
  [[nodiscard]] bool has_said_goodbye() const { return goodbye_; }
  /// The other rank has closed it, or its process has ended, without a goodbye.
  [[nodiscard]] bool is_lost() const { return lost_ && !goodbye_; }

 private:
  void write_out();
  void read_in();
  void parse();

  Socket socket_;
  std::vector<u8> outbox_, partial_;
  std::deque<Arrived> inbox_;
  u64 sent_ = 0, taken_ = 0;
  bool goodbye_ = false, lost_ = false;
};

/// What each rank tells the others about itself.
struct Introduction {
  u32 ranks = 0;
  int device = 0;
  char host[64] = {};  ///< a GPU is one of a host
};

/// Links to all other ranks, in the making: each rank listens under the group's name and its number, and calls those
/// before it. Complete only when all of them have come.
class Meeting {
 public:
  Meeting(std::string name, int rank, const Introduction& own);
  /// Why there can be none; else empty.
  [[nodiscard]] const std::string& wrong() const { return wrong_; }
  /// Goes on; whether it is complete.
  bool go_on();
  /// By rank; null at the own one.
  [[nodiscard]] std::vector<std::unique_ptr<Link>> take() { return std::move(links_); }

 private:
  void call(int rank);
  void answer();
  void hear();
  [[nodiscard]] std::size_t ranks() const { return own_.ranks; }

  std::string name_;
  int rank_;
  Introduction own_;
  Socket listener_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<Link>> unnamed_;  ///< that have called, and not said who they are
  std::vector<bool> known_;                     ///< by rank: its introduction has come, and fits
  std::string wrong_;
};

}  // namespace lockstep::ptx
