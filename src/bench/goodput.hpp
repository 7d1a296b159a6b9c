// Training at scale, simulated: how much of the time of a long run on thousands of devices is useful, and what takes
// the rest. A pure function of its setup, seed included; it reads no clock and starts nothing.
//
// What is simulated is what `lockstep launch` does (docs/faults.md). A checkpoint follows every some steps and the last
// one; training stands while it is copied, and it is safe some time later; if the one before is not yet safe, training
// waits for that, too. When a device fails, all ranks end and start again, from the newest safe checkpoint, and repeat
// the steps since. A failed device takes its host away: a spare one takes its place, or the job waits for one, or it
// goes on with fewer, until a host is repaired and joins at the next checkpoint. Devices fail and become slow at all
// times, also while nothing is computed, and also those that have just been replaced.
//
// It goes from event to event and never from step to step. Between two events all steps take equally long, so a run of
// a million steps is as many events as it has checkpoints, failures and slow devices, a few times over.
#pragma once

#include <cstdint>

namespace lockstep::bench {

/// What becomes of a host with a failed device.
enum class LostHost {
  replaced,  ///< at once: there is always another, or only the processes had died
  awaited,   ///< while no spare host is left, the job waits until a host is repaired
  left_out,  ///< while no spare host is left, the job goes on with fewer
};

struct FailureSetup {
  double device_mtbf_seconds = 0;  ///< mean time between failures of one device; 0: none fails
  LostHost lost_host = LostHost::replaced;
  int spare_hosts = 0;
  double repair_seconds = 0;  ///< until a lost host is a spare one
};

struct CheckpointSetup {
  std::int64_t every_steps = 1;
  double blocked_seconds = 0;  ///< for which training stands
  double safe_seconds = 0;     ///< from then on until it is written
};

struct RestartSetup {
  double detection_seconds = 0;  ///< of a failure
  double start_seconds = 0;      ///< of all ranks
  double reload_seconds = 0;     ///< of the checkpoint
};

/// At any time about `share` of the devices are slow. Each becomes so by itself, and stays so for `seconds`; at the
/// start none is.
struct StragglerSetup {
  double share = 0;
  double factor = 1;  ///< a slow device takes so many times as long
  double seconds = 0;
};

struct GoodputSetup {
  int devices = 1, devices_a_host = 8;
  std::int64_t steps = 1;
  double step_seconds = 1;     ///< on all devices, none of which is slow, without what is exposed of the all-reduce
  double exposed_seconds = 0;  ///< of the all-reduce, in each step (network_tiers.hpp)
  int shards_a_device = 0;     ///< 0: as fine as needed (step_time.hpp)
  bool balanced = true;
  FailureSetup failures;
  CheckpointSetup checkpoints;
  RestartSetup restarts;
  StragglerSetup stragglers;
  std::uint64_t seed = 1;
};

/// Seconds of the run. Each is in one of them.
struct GoodputTimes {
  double steps = 0;          ///< useful: the steps that were kept, as fast as in the setup
  double reduction = 0;      ///< what was exposed of the all-reduce, in steps that were kept
  double stragglers = 0;     ///< by which slow devices made steps longer that were kept
  double missing_hosts = 0;  ///< by which hosts that were missing made steps longer that were kept
  double checkpoints = 0;    ///< for which training stood
  double lost_work = 0;      ///< in steps that were lost, and repeated
  double restarts = 0;
  double awaiting_hosts = 0;

  [[nodiscard]] double wall() const {
    return steps + reduction + stragglers + missing_hosts + checkpoints + lost_work + restarts + awaiting_hosts;
  }
};

struct GoodputRun {
  GoodputTimes times;
  double wall_seconds = 0;  ///< the clock's, at the end
  double steps_done = 0;
  bool finished = false;         ///< false: given up after kPatience times what the steps alone take
  std::int64_t failures = 0;     ///< those during a restart, too
  std::int64_t checkpoints = 0;  ///< that became safe
  std::int64_t events = 0;       ///< that were simulated

  /// Useful time to time.
  [[nodiscard]] double goodput() const { return times.steps / wall_seconds; }
};

constexpr double kPatience = 1000;

/// Expects numbers that make sense: counts of at least 1, seconds of at least 0, a step of more than 0, a share below
/// 1, a factor of at least 1; and seconds of slowness and of repair where there are slow devices or lost hosts.
[[nodiscard]] GoodputRun simulate_goodput(const GoodputSetup& setup);

}  // namespace lockstep::bench
