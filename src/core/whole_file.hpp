// Files as one string.
#pragma once

#include <optional>
#include <string>

namespace lockstep {

/// All bytes of a file, also of those of /proc, whose size is not known before; absent where it cannot be opened.
[[nodiscard]] std::optional<std::string> read_whole_file(const std::string& path);

/// Replaces a file, and makes its folder; a reader sees all of the old text or all of the new. Returns why it could
/// not, or "". Nothing is synced: for what may be lost with the machine.
[[nodiscard]] std::string replace_whole_file(const std::string& path, const std::string& text);

}  // namespace lockstep
