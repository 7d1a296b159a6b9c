// A product with a factor for each channel of each sample, as squeeze-and-excitation has it (Hu, Shen and Sun, 2018):
// x [batch, ..., channels] and factors [batch, channels], or with ones between. The factors' gradient is the sum of
// x * dy over the pixels, from the first to the last.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

#include "core/host_device.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

/// Sizes of x.
struct ChannelFactors {
  std::int64_t batch = 0, pixels = 1, channels = 0;

  explicit ChannelFactors(const Shape& x) : batch(x.front()), channels(x.back()) {
    for (std::size_t i = 1; i + 1 < x.size(); ++i) pixels *= x[i];
  }
  /// Which factor element i of x is multiplied by.
  LOCKSTEP_HOST_DEVICE std::int64_t of(std::int64_t i) const {
    return i / (pixels * channels) * channels + i % channels;
  }
};

/// Whether input 1 has a factor for each channel of input 0, and not one for each element.
inline bool are_channel_factors(std::span<const TensorSpec> inputs) {
  if (inputs.size() != 2 || inputs[0].shape == inputs[1].shape || inputs[0].shape.size() < 3) return false;
  const Shape &x = inputs[0].shape, &factors = inputs[1].shape;
  if (factors.size() < 2 || factors.front() != x.front() || factors.back() != x.back()) return false;
  const auto is_one = [](std::int64_t size) { return size == 1; };
  return factors.size() == 2 ||
         (factors.size() == x.size() && std::all_of(factors.begin() + 1, factors.end() - 1, is_one));
}

[[nodiscard]] std::unique_ptr<Kernel> make_channel_factors_cpu(const KernelRequest& request);

}  // namespace lockstep::ops
