// Mixed precision for any kernel: what stands in bfloat16 or float16 is upcast before the call, and what the kernel
// makes is rounded after it. So every op has it with no line of its own, on the CPU and on GPUs, and an op with a
// kernel that reads these types itself gives the same up to the order of its sums.
#pragma once

#include <memory>

#include "device/cast.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

/// Who casts a kernel's operands, where the kernel computes.
class Casts {
 public:
  Casts() = default;
  Casts(const Casts&) = delete;
  Casts& operator=(const Casts&) = delete;
  virtual ~Casts() = default;
  /// `n` elements; the two do not overlap.
  virtual void cast(device::Cast cast, DType type, const void* from, void* to, std::int64_t n) const = 0;
};

[[nodiscard]] std::shared_ptr<const Casts> cpu_casts();

/// A factory, and whether it may be given requests that hold low-precision tensors; see OpDef::takes_low_precision.
struct KernelMaker {
  const KernelFactory& make;
  bool takes_low_precision = false;
};

/// The op's kernel, if it takes what the request holds, else one that is given float32.
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker, const KernelRequest& request,
                                                  const std::shared_ptr<const Casts>& casts);

/// Whether the request has anything in low precision.
[[nodiscard]] bool needs_upcast(const KernelRequest& request);

/// `make` is given the request in float32. Where `request.compute_type` is a low-precision type, all float operands are
/// rounded to it, and parameters of two dimensions or more, once for each version of them; those that the request has
/// in the narrow type are so already.
[[nodiscard]] std::unique_ptr<Kernel> make_upcast_kernel(const KernelFactory& make, const KernelRequest& request,
                                                         const std::shared_ptr<const Casts>& casts);

}  // namespace lockstep::ops
