// The only list of metrics: what the exporter serves and docs/metrics.md are made from it.
//
// Names have the prefix `lockstep_`, base units (seconds, bytes, hertz, ...) and, if they are counters, the suffix
// `_total`. Moments are Unix times, not ages. Every series has the label `rank`; job, run and host are labels of the
// scrape's target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::telemetry {

enum class MetricKind : std::uint8_t { counter, gauge, histogram };

/// Which ranks have it.
enum class MetricScope : std::uint8_t {
  rank,  ///< every rank
  job,   ///< rank 0, for all ranks
  gpu,   ///< ranks that compute on a GPU, about that GPU
};

/// The values of a label that a metric is split by, in order.
enum class Phase : std::uint8_t { data_wait, part_wait, compute, reduce_wait, reduce, update, evaluate, checkpoint };
enum class State : std::uint8_t { starting, training, evaluating, checkpointing, ended, failed };
enum class Activity : std::uint8_t { compute, data_wait, activation_wait, gradient_wait, send_wait, idle };
enum class Way : std::uint8_t { shared_memory, network };
enum class NonFinite : std::uint8_t { loss, gradient_norm };

enum class Metric : std::uint8_t {
  // Every rank: the step.
  steps,
  samples,
  tokens,
  phase_seconds,
  step_seconds,
  waiting_ratio,
  first_step_time,
  last_step_time,
  start_time,
  state,
  waiting_for_rank,
  // Every rank: its share.
  micro_batches,
  share_ratio,
  micro_batches_computed,
  micro_batch_compute_total,
  micro_batch_compute,
  device_micro_batch_seconds,
  flops,
  peak_flops,
  flops_utilization,
  reduce_bytes,
  part_info,
  worker_seconds,
  // Every rank: its input.
  data_bytes_read,
  batches,
  late_batches,
  prefetch_depth,
  prefetch_threads,
  sample_cache_bytes,
  // Every rank: its process.
  process_cpu,
  process_memory,
  process_threads,
  build_info,
  rank_info,
  // Rank 0: the job.
  non_finite,
  loss,
  gradient_norm,
  learning_rate,
  loss_scale,
  updates_skipped,
  step,
  planned_steps,
  epoch,
  validation_loss,
  validation_metric,
  evaluations,
  bad_samples,
  world_size,
  hosts,
  checkpoints,
  checkpoint_failures,
  checkpoint_seconds,
  checkpoint_blocked,
  checkpoint_last_seconds,
  checkpoint_bytes,
  checkpoint_step,
  checkpoint_time,
  checkpoint_interval,
  balancer_moves,
  balancer_micro_batches_moved,
  restarts,
  run_seconds,
  job_info,
  // The rank's GPU.
  gpu_utilization,
  gpu_memory_used,
  gpu_memory_total,
  gpu_power,
  gpu_energy,
  gpu_temperature,
  gpu_sm_clock,
  gpu_memory_clock,
  gpu_throttled,
  gpu_throttle_seconds,
  gpu_ecc_errors,
  gpu_xid_errors,
  gpu_last_xid,
  gpu_pcie_bytes,
  gpu_nvlink_bytes,
  gpu_lost,
  gpu_co_tenant,
  gpu_info,
};
inline constexpr std::size_t kMetrics = static_cast<std::size_t>(Metric::gpu_info) + 1;

struct MetricInfo {
  Metric id;
  const char* name;
  MetricKind kind;
  MetricScope scope;
  const char* help;
  const char* label = "";                     ///< the label that it is split by, or names of labels that describe it
  std::span<const char* const> values = {};   ///< of that label; empty: one series
  std::span<const double> upper_bounds = {};  ///< of a histogram, ascending
};

/// In the order of Metric.
[[nodiscard]] std::span<const MetricInfo> metric_list();
[[nodiscard]] const MetricInfo& info_of(Metric metric);

/// Number of values that a metric stores: one per series; for a histogram the buckets, the count beyond them and the
/// sum.
[[nodiscard]] std::size_t slots_of(const MetricInfo& metric);
/// Number of series in a scrape.
[[nodiscard]] std::size_t series_of(const MetricInfo& metric);

/// The table of docs/metrics.md.
[[nodiscard]] std::string metrics_markdown();

}  // namespace lockstep::telemetry
