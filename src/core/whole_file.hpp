// A file in one string.
#pragma once

#include <optional>
#include <string>

namespace lockstep {

/// All bytes of a file, also of those of /proc, whose size is not known before; absent where it cannot be opened.
[[nodiscard]] std::optional<std::string> read_whole_file(const std::string& path);

}  // namespace lockstep
