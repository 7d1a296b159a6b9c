// Reading and writing whole files as strings.
#pragma once

#include <optional>
#include <string>

namespace lockstep {

/// All bytes of a file, also of those in /proc, whose size is not known beforehand; nullopt if it cannot be opened.
[[nodiscard]] std::optional<std::string> read_whole_file(const std::string& path);

/// Replaces a file atomically, creating its folder: a reader sees either all of the old text or all of the new. Returns
/// the reason of a failure, or "". Nothing is synced to disk: for files that may be lost when the machine fails.
[[nodiscard]] std::string replace_whole_file(const std::string& path, const std::string& text);

}  // namespace lockstep
