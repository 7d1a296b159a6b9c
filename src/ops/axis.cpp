#include "ops/axis.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::ops {

std::size_t axis_of(const std::string& op, const Attributes& attributes, const Shape& shape) {
  const std::int64_t rank = shape.size();
  const std::int64_t given = attributes.integer("axis"), axis = given < 0 ? given + rank : given;
  if (axis < 1 || axis >= rank) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected an axis from 1 to {}, or from the end -1 to {}, found {}", op, rank - 1,
                            1 - rank, given));
  }
  return axis;
}

}  // namespace lockstep::ops
