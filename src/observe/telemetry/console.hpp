// The terminal, file or pipe that a run's progress goes to, as something that never holds the run up: a terminal may be
// stopped (Ctrl-S), a pipe unread, a disk full. Text is queued and written by a separate thread; what a reader does not
// take is left out once the queue is full, and the next line says so. The run's record (events.jsonl) does not depend
// on it.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::telemetry {

/// Takes text: whole lines, or a line that is drawn again.
using Print = std::function<void(std::string_view)>;

struct ConsoleOptions {
  std::size_t most_bytes = std::size_t{16} << 20;  ///< that are queued
  std::chrono::milliseconds patience{5'000};       ///< finish() waits for a reader that takes nothing for this long
  /// The line for so many lines that were left out.
  std::function<std::string(std::size_t)> left_out;
};

class Console {
 public:
  /// The caller keeps the descriptor open.
  Console(int descriptor, ConsoleOptions options);
  /// Like finish().
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void print(std::string_view text);
  /// Whether more would be left out: for text that its source can keep.
  bool is_full() const;
  [[nodiscard]] Print printer() {
    return [this](std::string_view text) { print(text); };
  }
  /// Waits until everything is written, for as long as the reader takes some of it. Returns why something was not: ""
  /// if nothing was lost. Once it has given up, it does not wait again.
  std::string finish();

 private:
  struct State;
  std::shared_ptr<State> state_;  ///< the thread's, too, which cannot be joined while a write hangs
};

/// For people: "12 lines were left out here: ...".
[[nodiscard]] std::string left_out_text(std::size_t lines);

}  // namespace lockstep::telemetry
