#include "backend/gpu/gpu_place.hpp"

#include <fmt/format.h>

namespace lockstep::backend {

std::string GpuPlace::text() const {
  std::string where = fmt::format("{}, rank {}, {}", host, rank, gpu);
  if (step) where += fmt::format(", step {}", *step);
  return op.empty() ? where : fmt::format("{}, {}", where, op);
}

Error gpu_error(const GpuPlace& place, const std::string& call, int code, const std::string& what) {
  return {ExitCode::infrastructure, fmt::format("{}: {} failed with {}: {}", place.text(), call, code, what)};
}

}  // namespace lockstep::backend
