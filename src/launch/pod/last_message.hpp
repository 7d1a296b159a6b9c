// Forwards a program's stderr and keeps its last message, for the file in which Kubernetes looks for the reason why a
// container ended.
#pragma once

#include <chrono>
#include <string>

namespace lockstep::launch {

/// The text from the last line that begins with "lockstep: " to the end, without the final line end; empty if there is
/// none.
[[nodiscard]] std::string last_message(const std::string& text);

/// A pipe for a child's stderr.
class MessagePipe {
 public:
  /// Throws Error(infrastructure).
  MessagePipe();
  ~MessagePipe();
  MessagePipe(const MessagePipe&) = delete;
  MessagePipe& operator=(const MessagePipe&) = delete;

  /// For the child; call started() to close it here once the child has been started.
  int writer() const { return writer_; }
  void started();
  /// Writes to stderr what has arrived. Waits for more at most that long, or until `wake` is readable.
  void pass_on(std::chrono::milliseconds patience, int wake);
  std::string last() const { return last_message(kept_); }

 private:
  int reader_ = -1, writer_ = -1;
  std::string kept_;  ///< the newest part
};

/// Writes the message, at most as many bytes as Kubernetes keeps. Warns on stderr if it cannot. `path` may be empty:
/// nowhere.
void write_termination_message(const std::string& path, const std::string& message);

}  // namespace lockstep::launch
