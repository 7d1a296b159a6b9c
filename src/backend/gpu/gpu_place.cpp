#include "backend/gpu/gpu_place.hpp"

#include <fmt/format.h>

namespace lockstep::backend {

std::string GpuPlace::text() const {
  const std::string where = fmt::format("{}, rank {}, {}, step {}", host, rank, gpu, step);
  return op.empty() ? where : fmt::format("{}, {}", where, op);
}

Error gpu_error(const GpuPlace& place, const std::string& call, int code, const std::string& what) {
  return {ExitCode::infrastructure, fmt::format("{}: {} failed with {}: {}", place.text(), call, code, what)};
}

}  // namespace lockstep::backend
