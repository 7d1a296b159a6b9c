// What shared libraries compute, in hashes: a security update that computes the same is no obstacle to a resume, one
// that does not is seen. Lossless decoders (zlib, libpng) have no choice, so they need no hash.
#pragma once

#include <string>

namespace lockstep::train {

/// 8 hexadecimal digits over the results of every function of the C library's math that lockstep or oneDNN calls, on
/// 16,384 inputs each: two implementations round about one result in a thousand differently. Takes some milliseconds.
[[nodiscard]] std::string hash_of_math();

/// The same of the pixels that libjpeg decodes from a noisy image with subsampled colors.
[[nodiscard]] std::string hash_of_jpeg();

}  // namespace lockstep::train
