#include "tools/bench/goodput.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "tools/bench/arrivals.hpp"
#include "tools/bench/step_time.hpp"

namespace lockstep::bench {

namespace {

// The hosts of a simulated run: which of them are in the job, which are being repaired, how many of their devices are
// slow. The caller passes in the time.

class Hosts {
 public:
  explicit Hosts(const GoodputSetup& setup);

  int devices() const { return static_cast<int>(active_.size()) * a_host_; }  ///< in the job
  int slow_devices() const { return slow_count_; }                            ///< among these
  bool missing() const { return !lost_.empty(); }
  bool can_join() const { return missing() && spares_ > 0; }
  double next_repair() const;    ///< when the next host becomes a spare one again; infinity: none is
                                 ///< being repaired
  double next_recovery() const;  ///< when the next slow device recovers; infinity: none is slow

  /// The host of this device, counted among those in the job, fails. As many spare hosts join as are missing.
  void lose(double now, int device);
  void repair();
  void join();
  /// Does nothing if the device is already slow.
  void slow_down(double now, int device);
  void recover();

 private:
  struct Recovery {
    double at = 0;
    int device = 0;  ///< numbered over the whole job
  };

  int number_of(int device) const;

  int a_host_;
  LostHost lost_host_;
  double repair_seconds_, slow_seconds_;
  std::vector<int> active_;  ///< host numbers
  std::deque<int> lost_;
  std::deque<double> repairs_;       ///< their end times; in order, since all repairs take equally long
  std::deque<Recovery> recoveries_;  ///< in order, for the same reason
  std::vector<bool> slow_;           ///< by device number
  int slow_count_ = 0, spares_;
};

Hosts::Hosts(const GoodputSetup& setup)
    : a_host_(setup.devices_a_host),
      lost_host_(setup.failures.lost_host),
      repair_seconds_(setup.failures.repair_seconds),
      slow_seconds_(setup.stragglers.seconds),
      active_(setup.devices / setup.devices_a_host),
      slow_(setup.devices),
      spares_(setup.failures.spare_hosts) {
  std::iota(active_.begin(), active_.end(), 0);
}

double Hosts::next_repair() const {
  return repairs_.empty() ? std::numeric_limits<double>::infinity() : repairs_.front();
}

double Hosts::next_recovery() const {
  return recoveries_.empty() ? std::numeric_limits<double>::infinity() : recoveries_.front().at;
}

int Hosts::number_of(int device) const {
  return active_[device / a_host_] * a_host_ + device % a_host_;
}

void Hosts::lose(double now, int device) {
  const auto place = active_.begin() + device / a_host_;
  const int host = *place;
  std::erase_if(recoveries_, [&](const Recovery& recovery) {
    if (recovery.device / a_host_ != host) return false;
    slow_[recovery.device] = false;
    --slow_count_;
    return true;
  });
  if (lost_host_ == LostHost::replaced) return;
  active_.erase(place);
  lost_.push_back(host);
  repairs_.push_back(now + repair_seconds_);
  join();
}

void Hosts::repair() {
  repairs_.pop_front();
  ++spares_;
}

void Hosts::join() {
  for (; can_join(); --spares_) {
    active_.push_back(lost_.front());
    lost_.pop_front();
  }
}

void Hosts::slow_down(double now, int device) {
  const int number = number_of(device);
  if (slow_[number]) return;
  slow_[number] = true;
  ++slow_count_;
  recoveries_.push_back({now + slow_seconds_, number});
}

void Hosts::recover() {
  slow_[recoveries_.front().device] = false;
  --slow_count_;
  recoveries_.pop_front();
}

constexpr double kNever = std::numeric_limits<double>::infinity();

enum class RunPhase { training, write_awaited, copying, safety_awaited, host_awaited, restarting };

/// The progress of the run, and the time of its steps, which is lost if the run goes back.
struct RunProgress {
  double steps_done = 0;
  GoodputTimes times;  ///< only those of steps that were kept
};

/// A checkpoint that is copied but not yet safe.
struct Writing {
  RunProgress progress;
  double safe_at = 0;
};

class GoodputSimulation {
 public:
  explicit GoodputSimulation(const GoodputSetup& setup)
      : setup_(setup), hosts_(setup), failing_(setup.seed, "failures"), slowing_(setup.seed, "stragglers") {}

  GoodputRun run() {
    const double deadline = kPatience * setup_.steps * setup_.step_seconds;
    follow_hosts();
    train();
    while (!run_.finished && run_.events < kMaxEvents && now_ < deadline) {
      advance(std::min(next_event(), deadline));
      ++run_.events;
      handle();
    }
    run_.times = others_;
    run_.times.steps = current_.times.steps;
    run_.times.reduction = current_.times.reduction;
    run_.times.stragglers = current_.times.stragglers;
    run_.times.missing_hosts = current_.times.missing_hosts;
    run_.wall_seconds = now_;
    run_.steps_done = current_.steps_done;
    return run_;
  }

 private:
  double safe_at() const { return writing_ ? writing_->safe_at : kNever; }
  double next_event() const {
    return std::min(
        {safe_at(), phase_end_, failing_.next(), slowing_.next(), hosts_.next_repair(), hosts_.next_recovery()});
  }

  void advance(double to) {
    const double seconds = to - now_;
    now_ = to;
    switch (phase_) {
      case RunPhase::training:
        return add_steps(seconds);
      case RunPhase::write_awaited:
      case RunPhase::copying:
      case RunPhase::safety_awaited:
        others_.checkpoints += seconds;
        return;
      case RunPhase::host_awaited:
        others_.awaiting_hosts += seconds;
        return;
      case RunPhase::restarting:
        others_.restarts += seconds;
        return;
    }
  }

  void add_steps(double seconds) {
    GoodputTimes& times = current_.times;
    const double step = step_.wall();
    current_.steps_done += seconds / step;
    times.steps += seconds * (step_.steps / step);
    times.reduction += seconds * (step_.reduction / step);
    times.stragglers += seconds * (step_.stragglers / step);
    times.missing_hosts += seconds * (step_.missing_hosts / step);
  }

  // Of simultaneous events, the first one in this order is handled first.
  void handle() {
    if (safe_at() <= now_) return became_safe();
    if (phase_end_ <= now_) return end_phase();
    if (hosts_.next_recovery() <= now_) {
      hosts_.recover();
      follow_hosts();
    } else if (hosts_.next_repair() <= now_) {
      repaired();
    } else if (slowing_.next() <= now_) {
      hosts_.slow_down(now_, slowing_.take(hosts_.devices()));
      follow_hosts();
    } else if (failing_.next() <= now_) {
      failed();
    }
  }

  void end_phase() {
    if (phase_ == RunPhase::copying) return copied();
    if (phase_ == RunPhase::restarting) return train();
    current_.steps_done = target_;  // the end of training up to the target; removes rounding
                                    // errors
    writing_ ? enter(RunPhase::write_awaited) : enter(RunPhase::copying, setup_.checkpoints.blocked_seconds);
  }

  void train() {
    target_ = std::min(setup_.steps, static_cast<std::int64_t>(current_.steps_done) + setup_.checkpoints.every_steps);
    enter(RunPhase::training);
    expect_target();
  }

  void copied() {
    writing_ = Writing{current_, now_ + setup_.checkpoints.safe_seconds};
    target_ == setup_.steps || hosts_.can_join() ? enter(RunPhase::safety_awaited) : train();
  }

  void became_safe() {
    safe_ = writing_->progress;
    writing_.reset();
    ++run_.checkpoints;
    if (phase_ == RunPhase::write_awaited) return enter(RunPhase::copying, setup_.checkpoints.blocked_seconds);
    if (phase_ != RunPhase::safety_awaited) return;
    run_.finished = target_ == setup_.steps;
    if (run_.finished) return;
    hosts_.join();
    follow_hosts();
    enter(RunPhase::restarting, setup_.restarts.start_seconds + setup_.restarts.reload_seconds);
  }

  void failed() {
    ++run_.failures;
    hosts_.lose(now_, failing_.take(hosts_.devices()));
    others_.lost_work += current_.times.wall() - safe_.times.wall();
    current_ = safe_;
    writing_.reset();  // the copy dies with its rank
    enough_hosts() ? restart() : enter(RunPhase::host_awaited);
    follow_hosts();
  }

  void repaired() {
    hosts_.repair();
    if (phase_ != RunPhase::host_awaited) return;
    hosts_.join();
    if (enough_hosts()) restart();
    follow_hosts();
  }

  void restart() {
    const RestartSetup& restarts = setup_.restarts;
    enter(RunPhase::restarting, restarts.detection_seconds + restarts.start_seconds + restarts.reload_seconds);
  }

  bool enough_hosts() const {
    return setup_.failures.lost_host == LostHost::awaited ? !hosts_.missing() : hosts_.devices() > 0;
  }

  void enter(RunPhase phase, double seconds = kNever) {
    phase_ = phase;
    phase_end_ = now_ + seconds;
  }

  // After each change of the hosts: updates the time of a step, and the rates at which devices fail or become slow.
  void follow_hosts() {
    const int devices = hosts_.devices();
    if (setup_.failures.device_mtbf_seconds > 0) failing_.set_rate(now_, devices / setup_.failures.device_mtbf_seconds);
    const StragglerSetup& slow = setup_.stragglers;
    if (slow.share > 0) slowing_.set_rate(now_, devices * slow.share / (slow.seconds * (1 - slow.share)));
    if (devices == 0) return;
    StepLoad load{.devices = setup_.devices,
                  .active = devices,
                  .slow = 0,
                  .slow_factor = slow.factor,
                  .micro_batches_a_device = setup_.micro_batches_a_device,
                  .balanced = setup_.balanced};
    const double all_fast = step_time(load);
    load.slow = hosts_.slow_devices();
    step_.steps = setup_.step_seconds;
    step_.reduction = setup_.exposed_seconds;
    step_.missing_hosts = setup_.step_seconds * (all_fast - 1);
    step_.stragglers = setup_.step_seconds * (step_time(load) - all_fast);
    if (phase_ == RunPhase::training) expect_target();
  }

  void expect_target() { phase_end_ = now_ + (target_ - current_.steps_done) * step_.wall(); }

  static constexpr std::int64_t kMaxEvents = 20'000'000;

  const GoodputSetup& setup_;
  Hosts hosts_;
  Arrivals failing_, slowing_;
  double now_ = 0, phase_end_ = 0;
  RunPhase phase_ = RunPhase::training;
  std::int64_t target_ = 0;  ///< the step at which the next checkpoint is due
  GoodputTimes step_;        ///< of one step on the current hosts
  GoodputTimes others_;      ///< everything except the steps that were kept
  RunProgress current_, safe_;
  std::optional<Writing> writing_;
  GoodputRun run_;
};

}  // namespace

GoodputRun simulate_goodput(const GoodputSetup& setup) {
  return GoodputSimulation(setup).run();
}

}  // namespace lockstep::bench
