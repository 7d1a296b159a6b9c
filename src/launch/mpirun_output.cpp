#include "launch/mpirun_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lockstep/error.hpp"

namespace lockstep::launch {

namespace {

telemetry::ConsoleOptions console_options() {
  telemetry::ConsoleOptions options;
  options.left_out = telemetry::left_out_text;
  return options;
}

}  // namespace

MpirunOutput::MpirunOutput(bool lossy)
    : lossy_(lossy), out_(STDOUT_FILENO, console_options()), err_(STDERR_FILENO, console_options()) {
  for (Stream& stream : streams_) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw Error(ExitCode::infrastructure, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    }
    stream.reader = ends[0];
    stream.writer = ends[1];
    fcntl(stream.reader, F_SETFL, O_NONBLOCK);
    fcntl(stream.reader, F_SETFD, 0);  // mpirun has it, too: if this process is killed, its pipes do not break
  }
}

MpirunOutput::~MpirunOutput() {
  started();
  for (Stream& stream : streams_) {
    if (stream.reader >= 0) ::close(stream.reader);
  }
}

void MpirunOutput::started() {
  for (Stream& stream : streams_) {
    if (stream.writer >= 0) ::close(stream.writer);
    stream.writer = -1;
  }
}

void MpirunOutput::read(Stream& stream, telemetry::Console& to) {
  std::array<char, 65536> block{};
  while (stream.reader >= 0 && (lossy_ || !to.is_full())) {
    const ssize_t count = ::read(stream.reader, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;
    if (count == 0) {
      ::close(stream.reader);
      stream.reader = -1;
      break;
    }
    stream.line.append(block.data(), count);
    std::string whole;
    std::size_t begin = 0;
    for (auto end = stream.line.find('\n'); end != std::string::npos; end = stream.line.find('\n', begin)) {
      const std::string_view line = std::string_view(stream.line).substr(begin, end - begin);
      if (words_.take(line)) whole.append(line).append("\n");
      begin = end + 1;
    }
    stream.line.erase(0, begin);
    to.print(whole);
  }
}

void MpirunOutput::pass_on(std::chrono::milliseconds patience, int wake) {
  const auto awaited = [this](const Stream& stream, const telemetry::Console& to) {
    return lossy_ || !to.is_full() ? stream.reader : -1;
  };
  std::array<pollfd, 3> waiting = {
      {{awaited(streams_[0], out_), POLLIN, 0}, {awaited(streams_[1], err_), POLLIN, 0}, {wake, POLLIN, 0}}};
  if (::poll(waiting.data(), waiting.size(), static_cast<int>(patience.count())) <= 0) return;
  read(streams_[0], out_);
  read(streams_[1], err_);
}

std::string MpirunOutput::finish() {
  if (!lossy_) (void)out_.finish();
  read(streams_[0], out_);
  read(streams_[1], err_);
  for (auto* stream : {&streams_[0], &streams_[1]}) {
    if (!stream->line.empty() && words_.take(stream->line))
      (stream == streams_.data() ? out_ : err_).print(stream->line);
    stream->line.clear();
  }
  (void)err_.finish();
  return out_.finish();
}

}  // namespace lockstep::launch
