#include "train/run_context.hpp"

namespace lockstep::train {

std::chrono::milliseconds timeout_of(const Job& job) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(job.timeout_seconds * 1000));
}

void RunContext::emit(const std::string& name, const telemetry::Record& record) const {
  if (leads() && options.sink != nullptr) options.sink->event(name, record);
}

}  // namespace lockstep::train
