#include "device/gpu/gpu_place.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::device {

std::string GpuPlace::text() const {
  std::string where = fmt::format("{}, rank {}, {}", host, rank, gpu);
  if (step) where += fmt::format(", step {}", *step);
  return op.empty() ? where : fmt::format("{}, {}", where, op);
}

void GpuTrail::enter(int stream, std::uint64_t step, const std::string& op) {
  const std::lock_guard lock(mutex_);
  Entered& entered = entered_[stream];
  entered.step = step;
  entered.op = op;
}

GpuPlace GpuTrail::place() const {
  const std::lock_guard lock(mutex_);
  GpuPlace place = place_;
  for (const auto& [stream, entered] : entered_) place.step = std::max(place.step.value_or(0), entered.step);
  for (const auto& [stream, entered] : entered_) {
    if (entered.step != place.step) continue;
    if (!place.op.empty()) place.op += " or ";
    place.op += entered.op;
  }
  return place;
}

Error gpu_error(const GpuPlace& place, const std::string& call, int code, const std::string& what) {
  return {ExitCode::infrastructure, fmt::format("{}: {} failed with {}: {}", place.text(), call, code, what)};
}

}  // namespace lockstep::device
