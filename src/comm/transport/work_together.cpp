#include "comm/transport/work_together.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include "comm/transport/recorded.hpp"
#include "comm/transport/topology.hpp"
#include "core/ran_time.hpp"
#include "core/spans.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

using std::chrono::milliseconds;

// While they wait, ranks meet in rounds. Where the work can be stopped, one takes at most this long, so that a request
// reaches all ranks in time.
constexpr milliseconds kPolled{500};
constexpr milliseconds kShortestDeadline{60'000};  // of a round, however short the job's timeout is

enum class State : std::uint8_t { working, stalled, given_up, done_false, done_true };

bool is_over(State state) {
  return state >= State::given_up;
}

State end_of(const std::function<bool()>& work) {
  try {
    return work() ? State::done_true : State::done_false;
  } catch (const WorkStopped&) {
    return State::given_up;
  }
}

/// What a rank tells the others in a round.
struct Report {
  State state = State::working;
  bool stop = false;
};

/// The state of one rank's work, polled once per round.
class Watched {
 public:
  Watched(std::future<bool> result, const WorkProgress& progress, milliseconds stalled)
      : result_(std::move(result)), progress_(progress), stalled_(stalled) {}

  /// Waits for the work, but not longer than `patience`. Throws what the work threw.
  State look(milliseconds patience) {
    for (RanTime waited; !is_over(state_);) {
      const auto left = patience - std::chrono::ceil<milliseconds>(waited.look());
      if (result_.wait_for(std::clamp(left, milliseconds(0), kCheckInterval)) == std::future_status::ready) {
        state_ = end_of([&] { return result_.get(); });
      } else if (left <= milliseconds(0)) {
        break;
      }
      (void)still_.look();
    }
    if (is_over(state_)) return state_;
    if (std::exchange(seen_, progress_.advances()) != progress_.advances()) still_ = RanTime();
    return still_.look() > stalled_ ? State::stalled : State::working;
  }

 private:
  std::future<bool> result_;  ///< its destructor joins the thread
  const WorkProgress& progress_;
  milliseconds stalled_;
  State state_ = State::working;
  std::uint64_t seen_ = 0;
  RanTime still_;  ///< since it has advanced
};

// The first rank whose work is not stalled reports it: a rank that waits for its disk cannot end.
void tell_of_stalled(const std::vector<Report>& reports, const Communicator& communicator, const Operation& operation,
                     milliseconds stalled) {
  const auto is_stalled = [](const Report& report) { return report.state == State::stalled; };
  const auto stands = std::find_if(reports.begin(), reports.end(), is_stalled);
  const auto tells = std::find_if_not(reports.begin(), reports.end(), is_stalled);
  if (stands == reports.end() || tells - reports.begin() != communicator.rank()) return;
  const int rank = stands - reports.begin();
  throw Error(ExitCode::infrastructure, fmt::format("rank {} on {}: '{}' has made no progress for {:.0f} s; look at "
                                                    "that rank, and at the disk that it reads from",
                                                    rank, communicator.topology().host_name(rank), operation.name,
                                                    std::chrono::duration<double>(stalled).count()));
}

std::vector<bool> results_of(const std::vector<Report>& reports, const Operation& operation) {
  std::vector<bool> returned;
  for (const Report& report : reports) {
    if (report.state == State::given_up) {
      throw Error(ExitCode::interrupted, fmt::format("'{}' was stopped before it was done", operation.name));
    }
    returned.push_back(report.state == State::done_true);
  }
  return returned;
}

}  // namespace

void WorkProgress::advance() {
  ++advances_;
  if (recorder_) recorder_->tick();
}

void WorkProgress::advance_or_stop() {
  advance();
  if (stopped_) throw WorkStopped();
}

std::vector<bool> work_together(Communicator& communicator, const Operation& operation,
                                const std::function<bool(WorkProgress&)>& work, const WorkOptions& options) {
  WorkProgress progress(recorder_of(communicator));
  const ActivityScope activity(recorder_of(communicator).get(), operation.name, operation.step);
  Operation round = operation;
  round.timeout = std::max(operation.timeout, kShortestDeadline);
  const milliseconds patience = std::min(options.stop ? kPolled : round.timeout / 3, options.stalled / 2);
  Watched watched(std::async(std::launch::async, [&] { return work(progress); }), progress, options.stalled);
  std::vector<Report> reports(communicator.size());
  do {
    const Report mine{watched.look(patience), options.stop && options.stop()};
    communicator.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(reports)), round);
    if (std::any_of(reports.begin(), reports.end(), [](const Report& report) { return report.stop; })) progress.stop();
    tell_of_stalled(reports, communicator, operation, options.stalled);
  } while (std::any_of(reports.begin(), reports.end(), [](const Report& report) { return !is_over(report.state); }));
  return results_of(reports, operation);
}

void work_of_first_rank(Communicator& communicator, const Operation& operation,
                        const std::function<void(WorkProgress&)>& work, const WorkOptions& options) {
  const auto of_first = [&](WorkProgress& progress) {
    if (communicator.rank() == 0) work(progress);
    return false;
  };
  (void)work_together(communicator, operation, of_first, options);
}

}  // namespace lockstep::comm
