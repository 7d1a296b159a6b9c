#include "observe/step_scope.hpp"

#include <fmt/format.h>

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

}  // namespace lockstep::observe
