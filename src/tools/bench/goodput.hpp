// Simulates training at scale: how much of the time of a long run on thousands of devices is useful, and where the rest
// goes. A pure function of its setup, which includes the seed; it reads no clock and starts nothing.
//
// It simulates what `lockstep launch` does (docs/faults.md). A checkpoint is written every so many steps and after the
// last one; training pauses while it is copied, and it becomes safe some time later; if the previous one is not yet
// safe, training waits for that first. When a device fails, all ranks end, restart from the newest safe checkpoint, and
// repeat the steps since. A failed device takes its host out of the job: a spare host replaces it, or the job waits for
// one, or it continues with fewer hosts until one is repaired and joins at the next checkpoint. Devices fail and become
// slow at any time, also while nothing is computed, and also if they have just been replaced.
//
// The simulation proceeds from event to event, not from step to step. Between two events all steps take equally long,
// so even a run of a million steps has only a few times as many events as it has checkpoints, failures and slow
// devices.
#pragma once

#include <cstdint>

namespace lockstep::bench {

/// What happens to a host with a failed device.
enum class LostHost {
  replaced,  ///< immediately: there is always another host, or only the processes had died
  awaited,   ///< if no spare host is left, the job waits until a host is repaired
  left_out,  ///< if no spare host is left, the job continues with fewer hosts
};

struct FailureSetup {
  double device_mtbf_seconds = 0;  ///< mean time between failures of one device; 0: devices never fail
  LostHost lost_host = LostHost::replaced;
  int spare_hosts = 0;
  double repair_seconds = 0;  ///< until a lost host becomes a spare one
};

struct CheckpointSetup {
  std::int64_t every_steps = 1;
  double blocked_seconds = 0;  ///< while training pauses
  double safe_seconds = 0;     ///< from then until the checkpoint is safely written
};

struct RestartSetup {
  double detection_seconds = 0;  ///< until a failure is detected
  double start_seconds = 0;      ///< to start all ranks
  double reload_seconds = 0;     ///< to load the checkpoint
};

/// At any time about `share` of the devices are slow. Each becomes slow independently and stays so for `seconds`; at
/// the start none is.
struct StragglerSetup {
  double share = 0;
  double factor = 1;  ///< how many times as long a slow device takes
  double seconds = 0;
};

struct GoodputSetup {
  int devices = 1, devices_a_host = 8;
  std::int64_t steps = 1;
  double step_seconds = 1;         ///< on all devices, none of them slow, without the exposed part of the all-reduce
  double exposed_seconds = 0;      ///< the exposed part of the all-reduce in each step (network_tiers.hpp)
  int micro_batches_a_device = 0;  ///< 0: as fine as needed (step_time.hpp)
  bool balanced = true;
  FailureSetup failures;
  CheckpointSetup checkpoints;
  RestartSetup restarts;
  StragglerSetup stragglers;
  std::uint64_t seed = 1;
};

/// Where the time of the run went, in seconds. Each second counts in exactly one field.
struct GoodputTimes {
  double steps = 0;          ///< useful: steps that were kept, at the setup's speed
  double reduction = 0;      ///< exposed all-reduce in steps that were kept
  double stragglers = 0;     ///< by which slow devices prolonged steps that were kept
  double missing_hosts = 0;  ///< by which missing hosts prolonged steps that were kept
  double checkpoints = 0;    ///< while training paused for them
  double lost_work = 0;      ///< in steps that were lost and repeated
  double restarts = 0;
  double awaiting_hosts = 0;

  double wall() const {
    return steps + reduction + stragglers + missing_hosts + checkpoints + lost_work + restarts + awaiting_hosts;
  }
};

struct GoodputRun {
  GoodputTimes times;
  double wall_seconds = 0;  ///< simulated time at the end of the run
  double steps_done = 0;
  bool finished = false;         ///< false: given up after kPatience times the duration of the steps alone
  std::int64_t failures = 0;     ///< including those during a restart
  std::int64_t checkpoints = 0;  ///< that became safe
  std::int64_t events = 0;       ///< simulated

  /// Useful time divided by total time.
  double goodput() const { return times.steps / wall_seconds; }
};

constexpr double kPatience = 1000;

/// Requires plausible numbers: counts of at least 1, seconds of at least 0, a step longer than 0, a share below 1, a
/// factor of at least 1; and durations of slowness and repair if there are slow devices or lost hosts.
[[nodiscard]] GoodputRun simulate_goodput(const GoodputSetup& setup);

}  // namespace lockstep::bench
