// JPEG by libjpeg-turbo. State lives in the call, so that any number of threads may decode at once.
//
// Every error is Error(data) that says what is wrong with the bytes, without a file's name: the caller knows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/image_size.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep::data {

[[nodiscard]] bool is_jpeg(std::span<const std::byte> bytes);

/// Reads no further than the header; `bytes` may be the beginning of a file.
[[nodiscard]] ImageSize jpeg_size(std::span<const std::byte> bytes);

/// Overwrites `out` with u8 [height, width, channels], 1 or 3 channels; its memory is reused where it fits. Grey and
/// colour are converted into each other as `channels` asks. The slow exact DCT and smooth upsampling, whatever the
/// machine: the same bits. A file that ends early is an error here, never a picture half grey.
void decode_jpeg(std::span<const std::byte> bytes, std::int64_t channels, Tensor& out);

}  // namespace lockstep::data
