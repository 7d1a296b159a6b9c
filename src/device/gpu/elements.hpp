// Elements that kernels keep in two bytes. In an expression one is a float; what is assigned is rounded to the nearest,
// once. So a functor over a Grid that is a template on its elements computes in float32 whatever they are.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"
#include "core/low_precision.hpp"
#include "lockstep/error.hpp"

namespace lockstep::device {

/// `Format`: one of core/low_precision.hpp.
template <class Format>
struct Element {
  std::uint16_t bits;
  // A float wherever one is wanted, as an element of float is.
  LOCKSTEP_HOST_DEVICE operator float() const { return Format::to_float(bits); }  // NOLINT(google-explicit-constructor)
  LOCKSTEP_HOST_DEVICE Element& operator=(float value) {
    bits = Format::from_float(value);
    return *this;
  }
};

/// use(element) with a value of the type that stands for `dtype`, a low-precision one. All uses have one type.
template <class Use>
auto with_low_precision(DType dtype, const Use& use) {
  LOCKSTEP_CHECK(is_low_precision(dtype), "bf16 or f16");
  return dtype == DType::f16 ? use(Element<Float16>{}) : use(Element<Bfloat16>{});
}

/// The same for float32, too.
template <class Use>
auto with_element(DType dtype, const Use& use) {
  return dtype == DType::f32 ? use(float{}) : with_low_precision(dtype, use);
}

}  // namespace lockstep::device
