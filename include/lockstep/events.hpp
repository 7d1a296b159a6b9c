// Events of a run: what the training loop says, once, to whoever listens. Rank 0 only, one thread.
//
// Events and their fields (a listener shows fields that it does not know, too):
//   start       job, ranks, threads, hosts, shards, batch_size, parameters, steps, epochs, device, exactness, version;
//               algorithms: what a GPU's kernels chose of the libraries' algorithms, a layer a line
//   step        step, epoch (from 1), loss, learning_rate, samples_per_second, seconds (since the run's start),
//               data_wait_seconds (since the step event before)
//   eval        step, set, loss, metrics
//   checkpoint  step, path, seconds until it was safe, blocked_seconds, bytes; best: the metric, if it is the best
//   balance     step (done when the shares change), reason, shares_by_rank, shards_moved; evidence: what the speeds are
//               from; and they: shard_seconds_by_rank, exchange_seconds, measured_seconds, predicted_before_seconds,
//               predicted_seconds
//   gpu         one for each rank, after start: rank, host, model, memory_bytes, compute_capability, multiprocessors,
//               clock_mhz, memory_clock_mhz, pci_bus, driver (the CUDA that it runs), driver_version (its own, where
//               NVML says it)
//   bad_sample  a sample that another one replaces: step, set, sample, name, replaced_by, replaced_by_name, message
//   restart (step, path), warning (message)
//   end         outcome, steps, samples, seconds, samples_per_second, metrics, phases, parameters_sha256, maps per rank
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace lockstep::telemetry {

using Field = std::variant<bool, std::int64_t, double, std::string, std::map<std::string, double>>;
using Record = std::vector<std::pair<std::string, Field>>;  ///< in the order in which it is written

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void event(const std::string& name, const Record& record) = 0;
};

}  // namespace lockstep::telemetry

namespace lockstep {

/// Steps to trace, counted from 1 as the run tells them; last 0: none.
struct ProfileSteps {
  std::int64_t first = 0, last = 0;
};

/// Who watches a run from outside. Called by the training thread of every rank.
class RunWatcher {
 public:
  enum class Wish {
    none,
    end_after_checkpoint,  ///< when the job's next checkpoint is written
    end_now,               ///< checkpoint after this step and end
  };
  virtual ~RunWatcher() = default;
  virtual void step_done(std::int64_t step) = 0;  ///< so many steps are done
  [[nodiscard]] virtual Wish wish() const = 0;    ///< one rank's is enough
};

}  // namespace lockstep
