#include "observe/observers.hpp"

#include <fmt/format.h>

#include "comm/transport/recorded.hpp"

namespace lockstep::observe {

Observers::Observers(const RankContext& run, const ProfileSteps& profile)
    : run_(run),
      recorder_(comm::recorder_of(run.communicator)),
      tracing_(run, profile),
      gpu_(rank_gpu(run)),
      metrics_(RunMetrics::make(run)) {
  if (metrics_) run_.sinks.push_back(&metrics_->events());
  if (run_.leads()) trainer_status_ = TrainerStatus::make();
  if (trainer_status_) run_.sinks.push_back(trainer_status_.get());
  if (gpu_.library) energy_ = telemetry::GpuEnergy::open(gpu_.library, gpu_.device);
  if (gpu_.problem.empty()) return;
  run_.warn(fmt::format("no metrics and no energy of the GPU: {}", gpu_.problem));
}

void Observers::start(const RunFacts& facts, const data::Loader& loader, const input::PreparedData& data,
                      const Graph& graph) {
  if (metrics_) {
    metrics_->serve(facts, gpu_, loader, [&data] { return static_cast<double>(data.bytes_read()); });
  }
  if (!run_.leads() || !run_.job.telemetry.tensorboard.enabled) return;
  board_ = std::make_unique<Board>(run_, data, graph);
  run_.sinks.push_back(board_.get());
  board_->start(facts.first_step, facts.steps_per_epoch);
}

bool Observers::select_trace(std::int64_t steps_done) {
  auto recorder = tracing_.recorder(steps_done);
  if (recorder == trace_) return false;
  trace_ = std::move(recorder);
  if (trace_) tracing_.begin_recording();
  return true;
}

void write_flight(const std::string& run_directory, Communicator& communicator) {
  const auto recorder = comm::recorder_of(communicator);
  if (!recorder || communicator.size() == 1) return;
  const int rank = communicator.rank();
  (void)dump_flight(*recorder, run_directory + "/flight", rank, communicator.topology().host_name(rank));
}

}  // namespace lockstep::observe
