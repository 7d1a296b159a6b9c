// The sliding window of convolution and pooling over images [batch, height, width, channels].
//
// `same` pads dilation * (kernel - 1) rows in total, half of them (rounded down) before and the rest after, whatever
// the stride: symmetric for odd kernels, like PyTorch's padding = (kernel - 1) / 2. So stride 2 halves the size
// (rounded up), and its first window is centred on the first pixel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/host_device.hpp"
#include "lockstep/attributes.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

/// One direction of the window, in pixels.
struct WindowAxis {
  std::int64_t kernel = 1, stride = 1, dilation = 1, before = 0, after = 0;
  std::int64_t reach() const { return dilation * (kernel - 1) + 1; }  ///< pixels from first to last tap
};

struct Window {
  WindowAxis height, width;
};

/// Sizes of one call, images NHWC.
struct WindowShape {
  std::int64_t batch = 0, height = 0, width = 0, channels = 0, out_height = 0, out_width = 0;
};

/// The attributes `kernel`, `stride` (default: the kernel, if `stride_is_kernel`, else 1), `padding` and, if the op has
/// it, `dilation`. Throws Error(configuration) that begins with `op`.
[[nodiscard]] Window window_of(const std::string& op, const Attributes& attributes, bool stride_is_kernel);

/// Checks the image and the window against each other; throws Error(configuration) that begins with `op`.
[[nodiscard]] WindowShape window_shape(const std::string& op, const Window& window, const TensorSpec& image);

/// Throws Error(configuration) unless `image` is [batch, height, width, channels] of f32 or a low-precision type.
void require_image(const std::string& op, const TensorSpec& image);

/// The declarations of these attributes.
[[nodiscard]] AttributeSpec kernel_attribute();
[[nodiscard]] AttributeSpec stride_attribute(bool stride_is_kernel);
[[nodiscard]] AttributeSpec padding_attribute(const Attribute& default_value);

/// The window and sizes of max_pool and avg_pool.
struct PoolShape {
  Window window;
  WindowShape image;
};

/// Throws Error(configuration) that begins with `op`: each window must cover a pixel of the image.
[[nodiscard]] PoolShape pool_shape(const std::string& op, const Attributes& attributes, const TensorSpec& image);

/// The attributes kernel, stride and padding of a pool.
[[nodiscard]] std::vector<AttributeSpec> pool_attributes();

/// The pixels that a window covers: taps first ... last - 1 of window number `index` are in the image; tap 0 is at
/// pixel `origin`.
struct Taps {
  LOCKSTEP_HOST_DEVICE Taps(const WindowAxis& axis, std::int64_t index, std::int64_t size)
      : origin(index * axis.stride - axis.before),
        first(std::max<std::int64_t>(0, -origin)),
        last(std::min(axis.kernel, size - origin)) {}
  std::int64_t origin, first, last;
  LOCKSTEP_HOST_DEVICE std::int64_t count() const { return last - first; }
};

}  // namespace lockstep::ops
