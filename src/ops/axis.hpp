// The attribute `axis` of ops that join or cut a tensor along one dimension other than the batch.
#pragma once

#include <cstddef>
#include <string>

#include "lockstep/attributes.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep::ops {

/// The index in `shape` of the dimension that the attribute `axis` names; negative numbers count from the end, as in
/// Python. Throws Error(configuration), beginning with `op`, if there is no such dimension or it is the batch.
[[nodiscard]] std::size_t axis_of(const std::string& op, const Attributes& attributes, const Shape& shape);

}  // namespace lockstep::ops
