// Which builds of the libraries that can touch a bit of a result this process has loaded.
#pragma once

#include <string>

namespace lockstep::train {

/// "libdnnl 0a1b2c, libjpeg 3d4e5f, libm 607182, libpng16 93a4b5, libz c6d7e8": the names, sorted, each with the first
/// digits of its build id (the GNU build id that the linker notes in a library; where it has none, the SHA-256 of its
/// file). They are oneDNN, the C library's functions (libm, libmvec), the decoders of images (and zlib, which PNG is
/// made of), and lockstep's own module for GPUs. NVIDIA's libraries are told by their versions (DeviceInfo::libraries).
[[nodiscard]] std::string library_builds();

}  // namespace lockstep::train
