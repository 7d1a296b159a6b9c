#include "observe/telemetry/console.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "core/ran_time.hpp"
#include "observe/telemetry/text.hpp"

namespace lockstep::telemetry {

namespace {

constexpr std::chrono::milliseconds kLook{50};

}  // namespace

struct Console::State {
  State(int to, ConsoleOptions how) : descriptor(to), options(std::move(how)) {}

  const int descriptor;
  const ConsoleOptions options;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> queue;
  std::size_t queued_bytes = 0;
  std::size_t taken_bytes = 0;  ///< by the reader, in total
  std::size_t left_out = 0;     ///< lines since the latest notice
  std::size_t lost = 0;         ///< lines in total
  int error = 0;                ///< errno of the write after which nothing is written any more
  bool writes = false, ends = false, given_up = false;

  bool is_idle() const { return queue.empty() && !writes; }
  /// Once it was full, only half of it: else there would be a notice after every line.
  bool has_room(std::size_t bytes) const {
    const std::size_t most = left_out > 0 ? options.most_bytes / 2 : options.most_bytes;
    return error == 0 && (queue.empty() || queued_bytes + bytes <= most);
  }
  void write_all(std::string_view text, std::unique_lock<std::mutex>& lock);
  void notice();
  void run();
};

// Called with the lock, which it gives up while it writes.
void Console::State::write_all(std::string_view text, std::unique_lock<std::mutex>& lock) {
  while (!text.empty() && error == 0) {
    lock.unlock();
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    const int failure = count < 0 ? errno : 0;
    if (failure == EAGAIN) {  // whoever shares the terminal has made it non-blocking
      pollfd writable{descriptor, POLLOUT, 0};
      ::poll(&writable, 1, -1);
    }
    lock.lock();
    if (count > 0) {
      text.remove_prefix(count);
      taken_bytes += count;
      changed.notify_all();
    } else if (failure != EAGAIN && failure != EINTR) {
      error = failure == 0 ? EIO : failure;
    }
  }
}

// Where the lines would have been.
void Console::State::notice() {
  if (left_out == 0) return;
  queue.push_back(options.left_out(std::exchange(left_out, 0)));
  queued_bytes += queue.back().size();
}

void Console::State::run() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return ends || !queue.empty(); });
    if (queue.empty()) return;
    std::string text = std::move(queue.front());
    queue.pop_front();
    writes = true;
    write_all(text, lock);
    queued_bytes -= text.size();
    if (queue.empty()) notice();
    writes = false;
    changed.notify_all();
  }
}

Console::Console(int descriptor, ConsoleOptions options)
    : state_(std::make_shared<State>(descriptor, std::move(options))) {
  std::thread([state = state_] { state->run(); }).detach();
}

Console::~Console() {
  (void)finish();
  const std::lock_guard lock(state_->mutex);
  state_->ends = true;
  state_->changed.notify_all();
}

void Console::print(std::string_view text) {
  if (text.empty()) return;
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  if (!state.has_room(text.size())) {
    const std::size_t lines = std::count(text.begin(), text.end(), '\n');
    state.left_out += lines;
    state.lost += lines;
    return;
  }
  state.notice();
  state.queued_bytes += text.size();
  state.queue.emplace_back(text);
  state.changed.notify_all();
}

bool Console::is_full() const {
  const std::lock_guard lock(state_->mutex);
  return state_->error == 0 && state_->queued_bytes >= state_->options.most_bytes / 2;
}

std::string Console::finish() {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  std::size_t seen = state.taken_bytes;
  RanTime idle;
  while (!state.is_idle() && state.error == 0 && !state.given_up) {
    state.changed.wait_for(lock, kLook);
    if (std::exchange(seen, state.taken_bytes) != state.taken_bytes) idle = RanTime();
    state.given_up = idle.look() >= state.options.patience;
  }
  if (state.error != 0) return std::strerror(state.error);
  if (!state.is_idle()) return "nobody reads it";
  return state.lost == 0 ? "" : fmt::format("{} left out, not read in time", counted(state.lost, "line"));
}

std::string left_out_text(std::size_t lines) {
  return fmt::format("{} left out here: not read in time\n", counted(lines, "line"));
}

}  // namespace lockstep::telemetry
