#include "observe/observers.hpp"

#include <fmt/format.h>

#include "comm/transport/recorded.hpp"

namespace lockstep::observe {

namespace {

/// How the observers are told about a phase.
struct PhaseInfo {
  const char* name = "";
  /// Whether it is an activity of the flight recorder. The reducer itself records what it waits for.
  bool is_activity = true;
  /// The metrics' state during the phase, and the phase that its time is added to. The phases of a step are added by
  /// RunMetrics::step_done, which knows how much of each was waiting.
  std::optional<std::pair<telemetry::State, telemetry::Phase>> state = std::nullopt;
};

const PhaseInfo& info_of(StepPhase phase) {
  static const std::array<PhaseInfo, kStepPhases> list = {{
      {"compute"},
      {"reduce", false},
      {"update"},
      {"evaluate", true, std::pair(telemetry::State::evaluating, telemetry::Phase::evaluate)},
      {"checkpoint", true, std::pair(telemetry::State::checkpointing, telemetry::Phase::checkpoint)},
  }};
  return list.at(static_cast<std::size_t>(phase));
}

}  // namespace

PhaseScope::PhaseScope(const PhaseObservers& to, StepPhase phase, std::uint64_t step, double* seconds)
    : phase_(phase),
      metrics_(to.metrics),
      seconds_(seconds),
      timer_(to.phases, info_of(phase).name),
      span_(to.trace, info_of(phase).name, step) {
  if (info_of(phase).is_activity) activity_.emplace(to.recorder, info_of(phase).name, step);
  if (metrics_ != nullptr && info_of(phase).state) metrics_->set_state(info_of(phase).state->first);
}

PhaseScope::~PhaseScope() {
  if (seconds_ != nullptr) *seconds_ = seconds();
  if (metrics_ == nullptr || !info_of(phase_).state) return;
  metrics_->add(info_of(phase_).state->second, seconds());
  metrics_->set_state(telemetry::State::training);
}

StepScope::StepScope(const PhaseObservers& to, std::uint64_t step)
    : to_(to),
      step_(step),
      range_(to.trace == nullptr ? nullptr : to.trace->ranges(),
             to.trace == nullptr ? "" : fmt::format("step {}", step + 1)) {}

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
