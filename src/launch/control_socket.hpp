// The control socket between a rank and the supervisor: TCP, lines of text, both ends.
//
//   rank to supervisor                            supervisor to rank
//     hello TOKEN RANK SIZE PID HOST                welcome LIMIT_MS PERIOD_MS
//     beat TICKS STEP MEDIAN_MS PEER SUMMARY        pong
//     event JSON                                    stop      checkpoint at the next step and end
//     error CODE MESSAGE                            yield     end after the next checkpoint
//     dumped PATH                                   dump      write the flight recorder to a file
//     bye CODE
//
// A process that dies closes its socket, whatever killed it; so the other end knows within milliseconds. The kernel
// of a host that lost its power closes nothing: that is for the heartbeat's limit.
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
  static constexpr std::size_t kLongestLine = 16U << 20U;  ///< whoever sends more is not one of ours

  ControlSocket() = default;
  explicit ControlSocket(int descriptor) : descriptor_(descriptor) {}
  ControlSocket(ControlSocket&& other) noexcept { *this = std::move(other); }
  ControlSocket& operator=(ControlSocket&& other) noexcept;
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;
  ~ControlSocket();

  /// Tries "address:port,address:port" in order. An empty socket when none answers within `patience` each.
  [[nodiscard]] static ControlSocket connect(const std::string& addresses, std::chrono::milliseconds patience);

  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] bool open() const { return descriptor_ >= 0; }
  [[nodiscard]] bool wants_to_write() const { return !to_send_.empty(); }
  void queue(std::string_view line);
  /// Sends what the kernel takes; false when the other end is gone. Never blocks.
  bool flush();
  /// Adds the lines that have come to `lines`, all but those behind more than `longest` bytes that were read before a
  /// line's end; false at the end, or where a line that has not ended is longer than that. Never blocks.
  bool read_lines(std::vector<std::string>& lines, std::size_t longest = kLongestLine);

 private:
  int descriptor_ = -1;
  std::string received_, to_send_;
};

/// Takes the first word off `rest`.
[[nodiscard]] std::string take_word(std::string& rest);
/// The number that the first word is; 0 where it is none.
[[nodiscard]] std::int64_t take_number(std::string& rest);
/// One line, whatever the text holds.
[[nodiscard]] std::string one_line(std::string text);

}  // namespace lockstep::launch
