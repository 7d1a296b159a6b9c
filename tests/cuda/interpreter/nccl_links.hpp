// Ranks of the stand-in for NCCL, and the bytes between them: a Unix socket for each pair, which exists in no folder
// and ends with its process. Nothing blocks: sending and receiving happen when somebody calls.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuda/interpreter/types.hpp"

namespace lockstep::ptx {

/// A file descriptor that is closed by the destructor.
class Socket {
 public:
  explicit Socket(int number = -1) : number_(number) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

enum class FrameKind : u32 { hello, message, gather, broadcast, sum, taken, goodbye };

/// Precedes each sequence of bytes.
struct Frame {
  FrameKind kind = FrameKind::message;
  u32 root = 0;    ///< for a broadcast
  u64 number = 0;  ///< of a collective among those of its communicator; in a hello: the rank
  u64 count = 0;   ///< of elements
  u64 bytes = 0;   ///< that follow

  /// "collective 3, ncclBroadcast of 40 elements of rank 1", as its sender called it.
  [[nodiscard]] std::string text() const;
};

struct Arrived {
  Frame frame;
  std::vector<u8> bytes;
};

/// The connection to one other rank.
class Link {
 public:
  explicit Link(Socket socket) : socket_(std::move(socket)) {}

  void send(const Frame& frame, const u8* bytes);
  /// Sends and receives what is possible without blocking.
  void go_on();
  /// Takes the next frame that has arrived, and tells its sender so.
  std::optional<Arrived> take();
  [[nodiscard]] const Arrived* next() const { return inbox_.empty() ? nullptr : &inbox_.front(); }

  [[nodiscard]] u64 sent() const { return sent_; }
  [[nodiscard]] u64 taken() const { return taken_; }  ///< of those sent, by the other rank
  [[nodiscard]] bool has_said_goodbye() const { return goodbye_; }
  /// The other rank has closed the connection, or its process has ended, without a goodbye.
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
  char host[64] = {};  ///< a GPU is identified together with its host
};

/// Establishes the links to all other ranks: each rank listens under the group's name and its number, and connects to
/// those before it. Complete only when all of them have arrived.
class Meeting {
 public:
  Meeting(std::string name, int rank, const Introduction& own);
  /// Why it is impossible; empty otherwise.
  [[nodiscard]] const std::string& wrong() const { return wrong_; }
  /// Makes progress; returns whether it is complete.
  bool go_on();
  /// By rank; null for the own one.
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
  std::vector<std::unique_ptr<Link>> unnamed_;  ///< connected, but without an introduction yet
  std::vector<bool> known_;                     ///< by rank: whether its introduction has arrived and matches
  std::string wrong_;
};

}  // namespace lockstep::ptx
