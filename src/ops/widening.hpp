// Mixed precision for any kernel of the CPU: what stands in bfloat16 or float16 is widened before the call, and what
// the kernel makes is rounded after it. So every op has it with no line of its own, and an op with a kernel that reads
// these types itself would give the same up to the order of its sums.
#pragma once

#include <memory>

#include "lockstep/op.hpp"

namespace lockstep::ops {

/// Whether the request has anything in bfloat16 or float16.
[[nodiscard]] bool wants_widening(const KernelRequest& request);

/// `make` is given the request in float32. Where `request.products` is such a type, all float operands are rounded
/// to it, and parameters of two dimensions or more, once for each version of them.
[[nodiscard]] std::unique_ptr<Kernel> make_widening(const KernelFactory& make, const KernelRequest& request);

}  // namespace lockstep::ops
