// What a run says of itself, on rank 0.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "config/config.hpp"
#include "device/device.hpp"
#include "lockstep/version.hpp"
#include "observe/gpu_events.hpp"
#include "train/catalogue.hpp"
#include "train/training.hpp"

namespace lockstep::train {

namespace {

constexpr const char* kNotSeenOnGpus =
    "this version's GPU code has been tested with stand-ins and has not run on a GPU yet; compare what it trains with "
    "device: cpu (docs/gpu.md)";

/// `total` seconds as phases that do not overlap: workers wait for input while the main thread is in `compute`.
std::map<std::string, double> shared_out(std::map<std::string, double> phases, double data_wait, double total) {
  double known = 0;
  for (const auto& [name, seconds] : phases) known += seconds;
  if (data_wait > 0) {
    phases["data_wait"] = data_wait;
    phases["compute"] = std::max(0.0, phases["compute"] - data_wait);
  }
  phases["other"] = std::max(0.0, total - known);
  return phases;
}

}  // namespace

void Training::emit_start() const {
  const auto& device = device_.info;
  telemetry::Record record = {{"job", job_.name},
                              {"ranks", std::int64_t{communicator_.size()}},
                              {"threads", std::int64_t{pool_->size()}},
                              {"hosts", static_cast<std::int64_t>(communicator_.topology().host_names.size())},
                              {"shards", job_.shards},
                              {"batch_size", job_.batch_size},
                              {"parameters", model_.parameters.elements()},
                              {"states", model_.states.elements()},
                              {"steps", steps_},
                              {"epochs", static_cast<double>(steps_) / static_cast<double>(steps_per_epoch_)},
                              {"device", fmt::format("{}, {}, {}", device.model, device.isa, device.libraries)},
                              {"samples", data_.train->size()},
                              {"validation_samples", data_.validation ? data_.validation->size() : std::int64_t{0}},
                              {"fingerprint", progress_.fingerprint},
                              {"exactness", progress_.exactness},
                              {"first_shard_seconds", first_shard_seconds_},
                              {"arena_bytes", executor_->program().arena_bytes},
                              {"seconds", seconds_since(start_)},
                              {"version", std::string(version())}};
  if (const auto& algorithms = executor_->algorithms(); !algorithms.empty()) {
    record.emplace_back("algorithms", fmt::format("{}", fmt::join(algorithms, "\n")));
  }
  const auto shards = config::told_about_shards(job_, catalogue_of(registries_));
  if (!shards.empty()) record.emplace_back("shards_chosen", shards);
  if (!gpu_data_.told.empty()) record.emplace_back("inputs", gpu_data_.told);
  if (!data_.indexes.empty()) record.emplace_back("index", std::string(data_.was_cached() ? "cached" : "made"));
  context_.emit("start", record);
  if (device_.is_gpu()) {
    observe::emit_gpus(context_);
    context_.emit("warning", {{"message", std::string(kNotSeenOnGpus)}});
  }
  for (const auto& message : data_.warnings()) context_.emit("warning", {{"message", message}});
}

void Training::emit_step(const exec::StepSums& sums) {
  if (!context_.leads() || options_.sink == nullptr) return;
  const double seconds = seconds_since(loop_start_);
  const double wait = balancing_.data_wait_seconds();
  std::map<std::string, double> metrics;
  for (std::size_t m = 0; m < sums.metrics.size(); ++m) {
    const Node& node = graph_.nodes[static_cast<std::size_t>(graph_.metrics[m])];
    metrics[metric_name(node)] = metric_value(*node.op, sums.metrics[m].first, sums.metrics[m].second);
  }
  const double done = static_cast<double>((progress_.step - first_step_) * job_.batch_size);
  telemetry::Record record = {{"step", progress_.step},
                              {"epoch", (progress_.step - 1) / steps_per_epoch_ + 1},
                              {"loss", last_loss_},
                              {"learning_rate", schedule_.at(progress_.step - 1)},
                              {"metrics", metrics},
                              {"samples_per_second", done / seconds},
                              {"data_wait_seconds", wait - reported_wait_},
                              {"seconds", seconds}};
  if (updated_.norm) record.emplace_back("gradient_norm", *updated_.norm);
  if (loss_scale_ > 0) {
    record.emplace_back("loss_scale", loss_scale_);
    record.emplace_back("left_out", updated_.left_out);
  }
  if (communicator_.size() > 1) record.emplace_back("shard_seconds", balancing_.shard_seconds());
  if (!balancing_.energy().empty()) record.emplace_back("energy_joules", balancing_.energy());
  context_.emit("step", record);
  reported_wait_ = wait;
}

void Training::emit_end(TrainResult& result) {
  result.phases = shared_out(phases_.seconds(), balancing_.data_wait_seconds(), seconds_since(loop_start_));
  // Per rank: shards of the last step, bytes handed to others, the same by the formula, compute seconds, file bytes.
  const auto statistics = exchange_->statistics();
  const std::array<double, 5> mine = {static_cast<double>(balancing_.own_shards().size()),
                                      static_cast<double>(statistics.shared_memory_bytes + statistics.network_bytes),
                                      bytes_by_formula_, executor_->times().compute_seconds,
                                      static_cast<double>(data_.bytes_read())};
  std::vector<double> all(mine.size() * static_cast<std::size_t>(communicator_.size()));
  communicator_.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                           {"report", static_cast<std::uint64_t>(progress_.step), context_.timeout()});
  std::array<std::map<std::string, double>, 5> columns;
  for (std::size_t i = 0; i < all.size(); ++i) columns.at(i % mine.size())[fmt::format("{}", i / mine.size())] = all[i];
  const auto loader = loader_->counters();
  const std::map<std::string, double> prefetch{{"threads", loader.threads}, {"depth", loader.depth}};
  telemetry::Record record = {{"outcome", outcome(result)},
                              {"steps", result.steps},
                              {"samples", result.samples},
                              {"seconds", result.seconds},
                              {"samples_per_second", result.samples_per_second},
                              {"loss", result.loss},
                              {"metrics", result.metrics},
                              {"phases", result.phases},
                              {"interrupted", result.interrupted},
                              {"parameters_sha256", result.parameters_sha256},
                              {"shards_by_rank", columns[0]},
                              {"bytes_sent_by_rank", columns[1]},
                              {"bytes_by_formula_by_rank", columns[2]},
                              {"compute_seconds_by_rank", columns[3]},
                              {"bytes_read_by_rank", columns[4]},
                              {"prefetch", prefetch},
                              {"sample_cache_bytes", loader.cache_bytes}};
  if (result.steps == first_step_) std::erase_if(record, [](const auto& field) { return field.first == "loss"; });
  if (const auto path = checkpointing_->path(result.steps); !path.empty()) record.emplace_back("checkpoint", path);
  if (checkpointing_->failures() > 0) record.emplace_back("checkpoints_failed", checkpointing_->failures());
  if (!balancing_.energy().empty()) record.emplace_back("energy_joules_by_rank", balancing_.energy());
  if (communicator_.size() > 1) add_waiting(record);
  context_.emit("end", record);
}

std::string Training::outcome(const TrainResult& result) const {
  if (result.interrupted) return "interrupted";
  if (result.steps == first_step_) return "already finished";
  return progress_.finished ? "stopped early" : "done";
}

// Who waited, and for whom; of the main thread, or of one worker.
void Training::add_waiting(telemetry::Record& record) const {
  using Seconds = double balance::RankTimes::*;
  const auto add = [&](const char* name, Seconds seconds) {
    std::map<std::string, double> by_rank;
    const auto& times = balancing_.times();
    for (std::size_t r = 0; r < times.size(); ++r) by_rank[std::to_string(r)] = times[r].*seconds;
    record.emplace_back(name, by_rank);
  };
  add("busy_seconds_by_rank", &balance::RankTimes::compute);
  add("data_wait_seconds_by_rank", &balance::RankTimes::data);
  add("waited_seconds_by_rank", &balance::RankTimes::waited);
  add("held_up_seconds_by_rank", &balance::RankTimes::held_up);
  add("exchange_seconds_by_rank", &balance::RankTimes::exchange);
  add("update_seconds_by_rank", &balance::RankTimes::update);
  record.emplace_back("share_moves", std::int64_t{balancing_.moves()});
}

}  // namespace lockstep::train
