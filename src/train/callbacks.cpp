#include "train/callbacks.hpp"

#include <fmt/format.h>

#include <cmath>
#include <span>

#include "lockstep/error.hpp"

namespace lockstep::train {

void call_back(const RunContext& run, CallbackMoment moment, TrainingState& state) {
  if (run.options.callbacks.empty()) return;
  for (Callback* const callback : run.options.callbacks) (callback->*moment)(state);
  struct {
    double factor;
    std::uint64_t stopped;
  } asked{state.learning_rate_factor(), state.is_stopped() ? 1U : 0U};
  run.communicator.broadcast(std::as_writable_bytes(std::span(&asked, 1)), 0,
                             {"callbacks", static_cast<std::uint64_t>(state.step), run.timeout()});
  if (!std::isfinite(asked.factor) || asked.factor < 0) {
    throw Error(ExitCode::usage, fmt::format("step {}: expected a factor of the learning rate that is 0 or more, found "
                                             "{}, which a callback has set",
                                             state.step, asked.factor));
  }
  state.set_learning_rate_factor(asked.factor);
  state.stop(asked.stopped != 0);
}

}  // namespace lockstep::train
