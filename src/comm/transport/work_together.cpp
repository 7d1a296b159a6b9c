#include "comm/transport/work_together.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>

#include "comm/transport/recorded.hpp"
#include "core/spans.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

using std::chrono::milliseconds;

// Ranks meet in rounds of a third of this while they wait, however short the job's timeout is.
constexpr milliseconds kShortestDeadline{60'000};

enum class State : std::uint8_t { working, stalled, done_false, done_true };

bool is_over(State state) {
  return state == State::done_false || state == State::done_true;
}

/// The state of one rank's work, polled once per round.
class Watched {
 public:
  Watched(std::future<bool> result, const WorkProgress& progress, milliseconds stalled)
      : result_(std::move(result)), progress_(progress), stalled_(stalled) {}

  /// Waits for the work, but not longer than `patience`. Throws what the work threw.
  State look(milliseconds patience) {
    if (!is_over(state_) && result_.wait_for(patience) == std::future_status::ready) {
      state_ = result_.get() ? State::done_true : State::done_false;
    }
    if (is_over(state_)) return state_;
    if (progress_.advances() != seen_) {
      seen_ = progress_.advances();
      moved_ = Clock::now();
    }
    return Clock::now() - moved_ > stalled_ ? State::stalled : State::working;
  }

 private:
  std::future<bool> result_;  ///< its destructor joins the thread
  const WorkProgress& progress_;
  milliseconds stalled_;
  State state_ = State::working;
  std::uint64_t seen_ = 0;
  Clock::time_point moved_ = Clock::now();
};

// The first rank whose work is not stalled reports it: a rank that waits for its disk cannot end.
void tell_of_stalled(const std::vector<State>& states, const Communicator& communicator, const Operation& operation,
                     milliseconds stalled) {
  const auto stands = std::find(states.begin(), states.end(), State::stalled);
  const auto tells = std::find_if(states.begin(), states.end(), [](State state) { return state != State::stalled; });
  if (stands == states.end() || tells - states.begin() != communicator.rank()) return;
  const auto rank = static_cast<int>(stands - states.begin());
  throw Error(ExitCode::infrastructure, fmt::format("rank {} on {}: '{}' has made no progress for {:.0f} s; look at "
                                                    "that rank, and at the disk that it reads from",
                                                    rank, communicator.topology().host_name(rank), operation.name,
                                                    std::chrono::duration<double>(stalled).count()));
}

}  // namespace

void WorkProgress::advance() {
  ++advances_;
  if (recorder_) recorder_->tick();
}

std::vector<bool> work_together(Communicator& communicator, const Operation& operation,
                                const std::function<bool(WorkProgress&)>& work, milliseconds stalled) {
  WorkProgress progress(recorder_of(communicator));
  if (communicator.size() == 1) return {work(progress)};
  const ActivityScope activity(recorder_of(communicator).get(), operation.name, operation.step);
  Operation round = operation;
  round.timeout = std::max(operation.timeout, kShortestDeadline);
  const milliseconds patience = std::min(round.timeout / 3, stalled / 2);
  Watched watched(std::async(std::launch::async, [&] { return work(progress); }), progress, stalled);
  std::vector<State> states(static_cast<std::size_t>(communicator.size()));
  do {
    const State mine = watched.look(patience);
    communicator.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(states)), round);
    tell_of_stalled(states, communicator, operation, stalled);
  } while (std::any_of(states.begin(), states.end(), [](State state) { return !is_over(state); }));
  std::vector<bool> returned;
  for (const State state : states) returned.push_back(state == State::done_true);
  return returned;
}

void work_of_first_rank(Communicator& communicator, const Operation& operation, const std::function<void()>& work) {
  (void)work_together(communicator, operation, [&](WorkProgress& /*progress*/) {
    if (communicator.rank() == 0) work();
    return false;
  });
}

}  // namespace lockstep::comm
