// Copies on disk of what large compressed files unpack to, for all ranks of a host and for later runs.
//
// A copy is written under another name and renamed, so that it is complete or absent. Its name identifies the state of
// the compressed file (path, size, times). After the content come the CRC-32 of every 16 KiB and a footer: a copy that
// is cut off or was written by another program is made anew when it is opened, and every read verifies what it returns.
#pragma once

#include <memory>
#include <string>

#include "data/readers/file.hpp"
#include "data/unpack.hpp"

namespace lockstep::data {

/// Of the compressed file `path`.
struct UnpackedCopy {
  std::unique_ptr<ByteSource> bytes;  ///< null: there is none
  std::string problem;                ///< why not, if something went wrong
};

/// Opens an existing copy of exactly this file; null if there is none. It is named as the compressed file is. Its
/// read() throws Error(infrastructure) for damaged bytes and removes the copy, so that another attempt makes it anew.
[[nodiscard]] std::unique_ptr<ByteSource> find_unpacked_copy(const std::string& path, const ByteCounter& counter,
                                                             const UnpackLimits& limits);

/// Makes and opens a copy. Copies of earlier states of the file are removed. Throws Error(data) for a damaged file and
/// for a bomb.
[[nodiscard]] UnpackedCopy make_unpacked_copy(const std::string& path, const ByteCounter& counter,
                                              const UnpackLimits& limits);

}  // namespace lockstep::data
