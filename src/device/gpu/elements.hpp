// Elements that kernels store in two bytes. In an expression an element is a float; assigning rounds to the nearest
// value, once. So a Grid functor that is a template over its elements always computes in float32.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"
#include "core/low_precision.hpp"
#include "lockstep/error.hpp"

namespace lockstep::device {

/// `Format`: a format of core/low_precision.hpp.
template <class Format>
struct Element {
  std::uint16_t bits;
  // Converts to float implicitly, like an element of type float.
  LOCKSTEP_HOST_DEVICE operator float() const { return Format::to_float(bits); }  // NOLINT(google-explicit-constructor)
  LOCKSTEP_HOST_DEVICE Element& operator=(float value) {
    bits = Format::from_float(value);
    return *this;
  }
};

/// Calls use(element) with a value of the C++ type for `dtype`, a low-precision type. All calls must return the same
/// type.
template <class Use>
auto with_low_precision(DType dtype, const Use& use) {
  LOCKSTEP_CHECK(is_low_precision(dtype), "bf16 or f16");
  return dtype == DType::f16 ? use(Element<Float16>{}) : use(Element<Bfloat16>{});
}

/// The same, also for float32.
template <class Use>
auto with_element(DType dtype, const Use& use) {
  return dtype == DType::f32 ? use(float{}) : with_low_precision(dtype, use);
}

}  // namespace lockstep::device
