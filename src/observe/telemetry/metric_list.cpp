#include "observe/telemetry/metric_list.hpp"

#include <fmt/format.h>

#include <array>

namespace lockstep::telemetry {

namespace {

using Kind = MetricKind;
using Scope = MetricScope;

constexpr std::array kPhases{"data_wait", "part_wait", "compute",  "reduce_wait",
                             "reduce",    "update",    "evaluate", "checkpoint"};
constexpr std::array kRunTimes{"useful", "repeated", "checkpoint", "data_wait", "peer_wait", "restart"};
constexpr std::array kActivities{"compute", "data_wait", "activation_wait", "gradient_wait", "send_wait", "idle"};
constexpr std::array kStates{"starting", "training", "evaluating", "checkpointing", "ended", "failed"};
constexpr std::array kWays{"shared_memory", "network"};
constexpr std::array kNonFinite{"loss", "gradient_norm"};
constexpr std::array kModes{"user", "system"};
constexpr std::array kValidation{"", "", "", ""};  // named when the run starts
constexpr std::array kRestarts{"death", "hang", "error", "mpirun", "resize"};
constexpr std::array kThrottled{"power_cap", "hardware_slowdown", "software_thermal", "hardware_thermal",
                                "power_brake"};
constexpr std::array kViolationReasons{"power", "thermal"};
constexpr std::array kEcc{"corrected", "uncorrected"};
constexpr std::array kDirections{"sent", "received"};
constexpr std::array kStepBounds{0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0};

constexpr std::array<MetricInfo, kMetrics> kList{{
    {Metric::steps, "lockstep_steps_total", Kind::counter, Scope::rank, "Optimizer steps of this process."},
    {Metric::samples, "lockstep_samples_total", Kind::counter, Scope::rank,
     "Samples computed; of a model in parts, on the ranks with its loss. The sum over ranks is the job's."},
    {Metric::tokens, "lockstep_tokens_total", Kind::counter, Scope::rank, "Tokens of these samples (jobs on text)."},
    {Metric::phase_seconds, "lockstep_phase_seconds_total", Kind::counter, Scope::rank,
     "Time of the main thread. data_wait: workers waited for input; part_wait: for other parts of the model; "
     "reduce_wait: for slower ranks; reduce: all-reduce that compute did not hide.",
     "phase", kPhases},
    {Metric::step_seconds,
     "lockstep_step_duration_seconds",
     Kind::histogram,
     Scope::rank,
     "Duration of a step, without evaluation and checkpoint.",
     "",
     {},
     kStepBounds},
    {Metric::waiting_ratio, "lockstep_waiting_ratio", Kind::gauge, Scope::rank,
     "Fraction of the last step spent waiting for slower ranks."},
    {Metric::first_step_time, "lockstep_first_step_timestamp_seconds", Kind::gauge, Scope::rank,
     "When this process finished its first step."},
    {Metric::last_step_time, "lockstep_last_step_timestamp_seconds", Kind::gauge, Scope::rank,
     "When the last step was done; before the first one, when training began."},
    {Metric::start_time, "lockstep_start_timestamp_seconds", Kind::gauge, Scope::rank,
     "When this process began to train."},
    {Metric::state, "lockstep_state", Kind::gauge, Scope::rank, "1 for the current state, 0 for the others.", "state",
     kStates},
    {Metric::waiting_for_rank, "lockstep_waiting_for_rank", Kind::gauge, Scope::rank,
     "Rank that this one is waiting for; -1: none."},
    {Metric::micro_batches, "lockstep_micro_batches", Kind::gauge, Scope::rank, "Micro-batches per step on this rank."},
    {Metric::share_ratio, "lockstep_share_ratio", Kind::gauge, Scope::rank,
     "Fraction of a step's micro-batches on this rank."},
    {Metric::micro_batches_computed, "lockstep_micro_batches_total", Kind::counter, Scope::rank,
     "Micro-batches computed."},
    {Metric::micro_batch_compute_total, "lockstep_micro_batch_compute_seconds_total", Kind::counter, Scope::rank,
     "Compute seconds of all micro-batches, summed over workers, without waiting. Divided by "
     "lockstep_micro_batches_total: the mean that the balancer uses."},
    {Metric::micro_batch_compute, "lockstep_micro_batch_compute_seconds", Kind::gauge, Scope::rank,
     "Mean compute seconds of a micro-batch in the last step."},
    {Metric::device_micro_batch_seconds, "lockstep_device_micro_batch_seconds", Kind::gauge, Scope::rank,
     "Mean compute seconds of a micro-batch since the start, labelled with what it depends on; basis of the first "
     "micro-batch assignment of later runs.",
     "device, host, workload"},
    {Metric::flops, "lockstep_model_flops_total", Kind::counter, Scope::rank,
     "Floating-point operations, forward and backward, of this rank's micro-batches in its part of the model."},
    {Metric::peak_flops, "lockstep_device_peak_flops", Kind::gauge, Scope::rank,
     "Peak floating-point operations per second: of the rank's cores, by vector width and clock; of a GPU, matrix "
     "products in the job's precision."},
    {Metric::flops_utilization, "lockstep_model_flops_utilization_ratio", Kind::gauge, Scope::rank,
     "MFU of the last step: the model's operations per second as a fraction of the device's peak."},
    {Metric::reduce_bytes, "lockstep_reduce_bytes_total", Kind::counter, Scope::rank,
     "Bytes of gradients and parameters sent to other ranks.", "way", kWays},
    {Metric::part_info, "lockstep_part_info", Kind::gauge, Scope::rank,
     "1; labels: the rank's part of the model (0 if whole), its first and last layer.", "part, first, last, digest"},
    {Metric::worker_seconds, "lockstep_worker_seconds_total", Kind::counter, Scope::rank,
     "Seconds of workers, summed, from the beginning of each step until the last rank has computed its last "
     "micro-batch. activation_wait, gradient_wait: for other parts of the model; send_wait: until sent memory is free "
     "again; idle: no task left.",
     "activity", kActivities},
    {Metric::data_bytes_read, "lockstep_data_read_bytes_total", Kind::counter, Scope::rank,
     "Bytes read from the data set's files."},
    {Metric::batches, "lockstep_prefetch_batches_total", Kind::counter, Scope::rank,
     "Batches of micro-batches delivered to workers."},
    {Metric::late_batches, "lockstep_prefetch_late_batches_total", Kind::counter, Scope::rank,
     "Of these, those not prefetched in time."},
    {Metric::prefetch_depth, "lockstep_prefetch_depth_batches", Kind::gauge, Scope::rank, "Prefetch depth."},
    {Metric::prefetch_threads, "lockstep_prefetch_threads", Kind::gauge, Scope::rank, "Prefetch threads."},
    {Metric::sample_cache_bytes, "lockstep_sample_cache_bytes", Kind::gauge, Scope::rank,
     "Memory of the cache of decoded samples."},
    {Metric::process_cpu, "lockstep_process_cpu_seconds_total", Kind::counter, Scope::rank,
     "Processor time of the rank's process.", "mode", kModes},
    {Metric::process_memory, "lockstep_process_resident_memory_bytes", Kind::gauge, Scope::rank,
     "Resident memory of the rank's process."},
    {Metric::process_threads, "lockstep_process_threads", Kind::gauge, Scope::rank, "Threads of the rank's process."},
    {Metric::build_info, "lockstep_build_info", Kind::gauge, Scope::rank, "1; labels: the build.",
     "version, libraries"},
    {Metric::rank_info, "lockstep_rank_info", Kind::gauge, Scope::rank, "1; labels: what the rank runs on.",
     "device, host, isa, local_rank, workers"},
    {Metric::non_finite, "lockstep_nonfinite_total", Kind::counter, Scope::job,
     "Values that were not finite. A non-finite loss ends the run.", "what", kNonFinite},
    {Metric::loss, "lockstep_loss", Kind::gauge, Scope::job, "Mean loss of the last step."},
    {Metric::gradient_norm, "lockstep_gradient_norm", Kind::gauge, Scope::job,
     "Gradient norm of the last step before clipping; absent without clip_norm."},
    {Metric::learning_rate, "lockstep_learning_rate", Kind::gauge, Scope::job, "Learning rate of the last step."},
    {Metric::loss_scale, "lockstep_loss_scale", Kind::gauge, Scope::job,
     "Loss scale of the last step, a power of two, with precision: fp16."},
    {Metric::updates_skipped, "lockstep_updates_skipped_total", Kind::counter, Scope::job,
     "Steps of this process whose update was skipped because a gradient was not finite at that scale, with precision: "
     "fp16."},
    {Metric::step, "lockstep_step", Kind::gauge, Scope::job, "Steps done, including before a restart."},
    {Metric::planned_steps, "lockstep_planned_steps", Kind::gauge, Scope::job, "Steps of the whole job."},
    {Metric::epoch, "lockstep_epoch", Kind::gauge, Scope::job, "Epochs done, with fractions."},
    {Metric::validation_loss, "lockstep_validation_loss", Kind::gauge, Scope::job, "Loss of the last evaluation."},
    {Metric::validation_metric, "lockstep_validation_metric", Kind::gauge, Scope::job,
     "The job's first four metrics in the last evaluation.", "metric", kValidation},
    {Metric::evaluations, "lockstep_evaluations_total", Kind::counter, Scope::job, "Evaluations by this process."},
    {Metric::bad_samples, "lockstep_bad_samples_total", Kind::counter, Scope::job,
     "Undecodable samples that were replaced (data.bad_samples: replace), each counted once."},
    {Metric::world_size, "lockstep_world_size", Kind::gauge, Scope::job, "Ranks of the job."},
    {Metric::hosts, "lockstep_hosts", Kind::gauge, Scope::job, "Hosts of the job."},
    {Metric::checkpoints, "lockstep_checkpoints_total", Kind::counter, Scope::job, "Checkpoints committed."},
    {Metric::checkpoint_failures, "lockstep_checkpoint_failures_total", Kind::counter, Scope::job,
     "Checkpoints that could not be written."},
    {Metric::checkpoint_seconds, "lockstep_checkpoint_seconds_total", Kind::counter, Scope::job,
     "Time from the beginning of checkpoints to their commit; training continued for most of it."},
    {Metric::checkpoint_blocked, "lockstep_checkpoint_blocked_seconds_total", Kind::counter, Scope::job,
     "Part of it in which training was blocked."},
    {Metric::checkpoint_last_seconds, "lockstep_checkpoint_last_duration_seconds", Kind::gauge, Scope::job,
     "Time from the beginning of the last checkpoint to its commit."},
    {Metric::checkpoint_bytes, "lockstep_checkpoint_size_bytes", Kind::gauge, Scope::job,
     "Size of the last checkpoint."},
    {Metric::checkpoint_step, "lockstep_checkpoint_step", Kind::gauge, Scope::job, "Step of the last checkpoint."},
    {Metric::checkpoint_time, "lockstep_checkpoint_last_success_timestamp_seconds", Kind::gauge, Scope::job,
     "When the last checkpoint was committed."},
    {Metric::checkpoint_interval, "lockstep_checkpoint_interval_seconds", Kind::gauge, Scope::job,
     "Time between checkpoints, by the job's setting and the mean step so far."},
    {Metric::balancer_moves, "lockstep_balancer_moves_total", Kind::counter, Scope::job,
     "How often micro-batches moved between ranks."},
    {Metric::balancer_micro_batches_moved, "lockstep_balancer_moved_micro_batches_total", Kind::counter, Scope::job,
     "Micro-batches that moved to another rank."},
    {Metric::restarts, "lockstep_restarts_total", Kind::counter, Scope::job,
     "Restarts by `lockstep launch` since it was started.", "reason", kRestarts},
    {Metric::run_seconds, "lockstep_run_seconds_total", Kind::counter, Scope::job,
     "Time since the first start of the run, over all restarts, as rank 0 sees it. useful: steps done for the first "
     "time, and evaluations; repeated: steps that had been lost; restart: from the last sign of life before it to the "
     "next step, and the first set-up.",
     "part", kRunTimes},
    {Metric::job_info, "lockstep_job_info", Kind::gauge, Scope::job, "1; labels: the job.",
     "name, digest, exact, exactness"},
    {Metric::gpu_utilization, "lockstep_gpu_utilization_ratio", Kind::gauge, Scope::gpu,
     "Fraction of the last sample period in which a kernel ran. A rank that waits in a collective shows 1."},
    {Metric::gpu_memory_used, "lockstep_gpu_memory_used_bytes", Kind::gauge, Scope::gpu, "Memory in use."},
    {Metric::gpu_memory_total, "lockstep_gpu_memory_size_bytes", Kind::gauge, Scope::gpu, "Memory size."},
    {Metric::gpu_power, "lockstep_gpu_power_watts", Kind::gauge, Scope::gpu, "Power draw."},
    {Metric::gpu_energy, "lockstep_gpu_energy_joules_total", Kind::counter, Scope::gpu,
     "Energy since the driver was loaded."},
    {Metric::gpu_temperature, "lockstep_gpu_temperature_celsius", Kind::gauge, Scope::gpu, "Temperature."},
    {Metric::gpu_sm_clock, "lockstep_gpu_sm_clock_hertz", Kind::gauge, Scope::gpu, "Clock of the multiprocessors."},
    {Metric::gpu_memory_clock, "lockstep_gpu_memory_clock_hertz", Kind::gauge, Scope::gpu, "Clock of the memory."},
    {Metric::gpu_throttled, "lockstep_gpu_throttled", Kind::gauge, Scope::gpu,
     "1 while the clock is throttled for this reason.", "reason", kThrottled},
    {Metric::gpu_throttle_seconds, "lockstep_gpu_throttle_seconds_total", Kind::counter, Scope::gpu,
     "Throttled time, as the driver counts it.", "reason", kViolationReasons},
    {Metric::gpu_ecc_errors, "lockstep_gpu_ecc_errors_total", Kind::counter, Scope::gpu,
     "Memory errors since the driver was loaded.", "kind", kEcc},
    {Metric::gpu_xid_errors, "lockstep_gpu_xid_errors_total", Kind::counter, Scope::gpu,
     "Critical errors (XID) since this process began."},
    {Metric::gpu_last_xid, "lockstep_gpu_last_xid", Kind::gauge, Scope::gpu, "Number of the last XID; 0: none."},
    {Metric::gpu_pcie_bytes, "lockstep_gpu_pcie_bytes_total", Kind::counter, Scope::gpu, "Bytes over PCIe.",
     "direction", kDirections},
    {Metric::gpu_nvlink_bytes, "lockstep_gpu_nvlink_bytes_total", Kind::counter, Scope::gpu, "Bytes over all NVLinks.",
     "direction", kDirections},
    {Metric::gpu_lost, "lockstep_gpu_lost", Kind::gauge, Scope::gpu,
     "1 if the driver reports the GPU as lost or in need of a reset."},
    {Metric::gpu_co_tenant, "lockstep_gpu_co_tenant", Kind::gauge, Scope::gpu,
     "1 while utilization and power indicate another program on the GPU."},
    {Metric::gpu_info, "lockstep_gpu_info", Kind::gauge, Scope::gpu, "1; labels: the GPU.", "driver, model, pci, uuid"},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kList.size(); ++i) {
    if (static_cast<std::size_t>(kList[i].id) != i) return false;
  }
  return true;
}
static_assert(in_order(), "the list is in the order of the enumeration");

const char* text(Kind kind) {
  return kind == Kind::counter ? "counter" : kind == Kind::gauge ? "gauge" : "histogram";
}

std::string labels_text(const MetricInfo& metric) {
  if (metric.label[0] == '\0') return "";
  std::string text = fmt::format("`{}`", metric.label);
  std::string values;
  for (const char* value : metric.values) {
    if (value[0] != '\0') values += fmt::format("{}{}", values.empty() ? ": " : ", ", value);
  }
  return text + values;
}

}  // namespace

std::span<const MetricInfo> metric_list() {
  return kList;
}

const MetricInfo& info_of(Metric metric) {
  return kList.at(static_cast<std::size_t>(metric));
}

std::size_t slots_of(const MetricInfo& metric) {
  if (metric.kind == Kind::histogram) return metric.upper_bounds.size() + 2;
  return metric.values.empty() ? 1 : metric.values.size();
}

std::size_t series_of(const MetricInfo& metric) {
  if (metric.kind == Kind::histogram) return metric.upper_bounds.size() + 3;  // +Inf, _sum, _count
  return slots_of(metric);
}

std::string metrics_markdown() {
  std::string page = "|metric|kind|of|labels|meaning|\n|---|---|---|---|---|\n";
  for (const MetricInfo& metric : kList) {
    const char* of = metric.scope == Scope::rank ? "rank" : metric.scope == Scope::job ? "job" : "GPU";
    page += fmt::format("|`{}`|{}|{}|{}|{}|\n", metric.name, text(metric.kind), of, labels_text(metric), metric.help);
  }
  return page;
}

}  // namespace lockstep::telemetry
