#include "launch/pod/last_message.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "core/say.hpp"
#include "lockstep/error.hpp"

namespace lockstep::launch {

namespace {

constexpr std::size_t kMaxKept = 65536;
constexpr std::size_t kMaxWritten = 4096;  ///< Kubernetes keeps the last 4,096 bytes; a message's first ones are the
                                           ///< most important

}  // namespace

std::string last_message(const std::string& text) {
  constexpr std::string_view kStart = "lockstep: ";
  std::size_t at = text.rfind(kStart);
  while (at != std::string::npos && at > 0 && text[at - 1] != '\n') at = text.rfind(kStart, at - 1);
  if (at == std::string::npos) return "";
  return text.substr(at, text.find_last_not_of('\n') + 1 - at);
}

MessagePipe::MessagePipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error(ExitCode::infrastructure, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  reader_ = ends[0];
  writer_ = ends[1];
  fcntl(reader_, F_SETFL, O_NONBLOCK);
}

MessagePipe::~MessagePipe() {
  started();
  ::close(reader_);
}

void MessagePipe::started() {
  if (writer_ >= 0) ::close(writer_);
  writer_ = -1;
}

void MessagePipe::pass_on(std::chrono::milliseconds patience, int wake) {
  std::array<pollfd, 2> waiting = {{{reader_, POLLIN, 0}, {wake, POLLIN, 0}}};
  ::poll(waiting.data(), waiting.size(), static_cast<int>(patience.count()));
  std::array<char, 4096> block{};
  for (ssize_t count = 0; (count = ::read(reader_, block.data(), block.size())) > 0;) {
    std::fwrite(block.data(), 1, static_cast<std::size_t>(count), stderr);
    kept_.append(block.data(), count);
  }
  if (kept_.size() > kMaxKept) kept_.erase(0, kept_.size() - kMaxKept / 2);
}

void write_termination_message(const std::string& path, const std::string& message) {
  if (path.empty()) return;
  std::ofstream file(path, std::ios::binary);
  file << message.substr(0, kMaxWritten);
  if (!file.flush()) {
    say("warning: --termination-log: cannot write {}: {}\n", path, std::strerror(errno));
  }
}

}  // namespace lockstep::launch
