// The control socket between a rank and the supervisor: TCP, lines of text in both directions.
//
//   rank to supervisor                            supervisor to rank
//                                                 challenge TEXT
//     hello PROOF RANK SIZE PID HOST                welcome LIMIT_MS PERIOD_MS
//     beat TICKS STEP MEDIAN_MS PEER SUMMARY        pong
//     event JSON                                    stop      checkpoint at the next step and end
//     error CODE MESSAGE                            yield     end after the next checkpoint
//     dumped PATH                                   dump      write the flight recorder to a file
//     bye CODE
//
// PROOF is the HMAC of the challenge: who listens on the network does not learn the token, which is its key.
//
// When a process dies, its socket is closed, whatever killed it, so the other end notices within milliseconds. A host
// that loses power closes nothing; the heartbeat's limit covers this case.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::launch {

class ControlSocket {
 public:
  static constexpr std::size_t kLongestLine = 16U << 20U;  ///< a longer line does not come from a rank

  ControlSocket() = default;
  explicit ControlSocket(int descriptor) : descriptor_(descriptor) {}
  ControlSocket(ControlSocket&& other) noexcept { *this = std::move(other); }
  ControlSocket& operator=(ControlSocket&& other) noexcept;
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;
  ~ControlSocket();

  /// Tries "address:port,address:port" in order. Returns an empty socket if none answers within `patience` each.
  [[nodiscard]] static ControlSocket connect(const std::string& addresses, std::chrono::milliseconds patience);

  int descriptor() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }
  bool wants_to_write() const { return !to_send_.empty(); }
  void queue(std::string_view line);
  /// Sends as much as the kernel accepts; returns false if the other end is gone. Never blocks.
  bool flush();
  /// Appends complete lines that have arrived to `lines`. Stops at a line longer than `longest` bytes. Returns false if
  /// the other end has closed, or at such a line. Never blocks.
  bool read_lines(std::vector<std::string>& lines, std::size_t longest = kLongestLine);

 private:
  int descriptor_ = -1;
  std::string received_, to_send_;
};

/// Removes the first word from `rest` and returns it.
[[nodiscard]] std::string take_word(std::string& rest);
/// Removes the first word from `rest` and returns it as a number; 0 if it is not one.
[[nodiscard]] std::int64_t take_number(std::string& rest);
/// Joins the text into a single line.
[[nodiscard]] std::string one_line(std::string text);
/// Several lines as a message carries them, and back.
[[nodiscard]] std::string packed_lines(std::string text);
[[nodiscard]] std::string unpacked_lines(std::string text);

}  // namespace lockstep::launch
