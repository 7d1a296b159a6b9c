// Mixed precision for any kernel: bfloat16 and float16 operands are upcast before the call, and its results are rounded
// afterwards. So every op supports it without code of its own, on the CPU and on GPUs, and a kernel that reads these
// types itself gives the same result up to the order of its sums.
#pragma once

#include <memory>

#include "device/cast.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

/// Casts a kernel's operands on its device.
class Casts {
 public:
  Casts() = default;
  Casts(const Casts&) = delete;
  Casts& operator=(const Casts&) = delete;
  virtual ~Casts() = default;
  /// `n` elements; `from` and `to` do not overlap.
  virtual void cast(device::Cast cast, DType type, const void* from, void* to, std::int64_t n) const = 0;
};

[[nodiscard]] std::shared_ptr<const Casts> cpu_casts();

/// A factory, and whether it accepts requests with low-precision tensors; see OpDef::takes_low_precision.
struct KernelMaker {
  const KernelFactory& make;
  bool takes_low_precision = false;
};

/// The op's kernel, if it accepts the request's types, else its float32 kernel with casts around it.
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker, const KernelRequest& request,
                                                  const std::shared_ptr<const Casts>& casts);

/// The request with float32 in the place of low-precision types.
[[nodiscard]] KernelRequest in_float32(KernelRequest request);

/// Whether the request has any low-precision tensor.
[[nodiscard]] bool needs_upcast(const KernelRequest& request);

/// `make` gets the request in float32. If `request.compute_type` is a low-precision type, all float operands are
/// rounded to it, as are parameters with two or more dimensions, once per version of them; those that have this type in
/// the request are already rounded.
[[nodiscard]] std::unique_ptr<Kernel> make_upcast_kernel(const KernelFactory& make, const KernelRequest& request,
                                                         const std::shared_ptr<const Casts>& casts);

}  // namespace lockstep::ops
