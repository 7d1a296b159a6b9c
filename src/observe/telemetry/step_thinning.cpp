#include "observe/telemetry/step_thinning.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace lockstep::telemetry {

namespace {

constexpr std::int64_t kDenseSteps = 32768;

}  // namespace

bool is_kept(std::int64_t number, std::int64_t dense) {
  if (number <= dense) return true;
  const std::uint64_t times = (number - 1) / dense + 1;
  return number % std::bit_ceil(times) == 0;
}

void KeptSteps::start(const events::Start& start) {
  if (!every_) return;
  const auto steps_per_epoch = start.epochs > 0 ? std::llround(start.steps / start.epochs) : std::int64_t{1};
  period_ = std::max<std::int64_t>(1, every_->steps(steps_per_epoch));
}

bool KeptSteps::has(const events::Step& step) const {
  if (step.skipped.value_or(false)) return true;
  return every_ ? step.step % period_ == 0 : is_kept(step.step, kDenseSteps);
}

std::string ThinnedLines::next(const events::Event& event, std::string line) {
  if (const auto* start = std::get_if<events::Start>(&event)) kept_.start(*start);
  if (std::holds_alternative<events::Evaluation>(event) || std::holds_alternative<events::Checkpoint>(event) ||
      std::holds_alternative<events::Goodput>(event)) {
    return line;
  }
  const auto* step = std::get_if<events::Step>(&event);
  if (step == nullptr) {
    is_after_ = true;
    return rest() + line;
  }
  left_out_.clear();
  if (std::exchange(is_after_, false) || kept_.has(*step)) return line;
  left_out_ = std::move(line);
  return "";
}

}  // namespace lockstep::telemetry
