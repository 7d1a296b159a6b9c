// The text of a table's file, whatever it is packed with and however its characters are written.
#pragma once

#include <string>
#include <string_view>

#include "data/readers/file.hpp"

namespace lockstep::data {

/// The bytes of a file, unpacked if it is compressed (gzip, bzip2, xz, Zstandard) or the only one of a zip or 7z
/// archive. Throws Error(data) for a damaged file, an archive of several and a decompression bomb.
[[nodiscard]] std::string read_packed_text(const std::string& path, const ByteCounter& counter);

/// Throws Error(data) for bytes of a file that is known to hold no CSV, by its first ones: JSON, a workbook, Arrow, ...
void require_rows(std::string_view bytes, const std::string& path);

/// UTF-16 and UTF-32 with a byte order mark become UTF-8; all else stays. Throws Error(data) for a text with NUL bytes.
[[nodiscard]] std::string as_utf8(std::string text, const std::string& path);

/// How a file's name ends, in small letters, without what it is packed with: ".csv" of A.CSV.GZ; empty: not at all.
[[nodiscard]] std::string kind_of_ending(const std::string& path);

}  // namespace lockstep::data
