// Paths in a job: where they are looked for, and what a pattern names.
#pragma once

#include <string>
#include <vector>

#include "config/cursor.hpp"

namespace lockstep::config {

/// A path relative to the job file's folder if something is there, else to the working directory. A path of the
/// command line is always relative to the working directory.
[[nodiscard]] std::string resolve(const Cursor& at, const std::string& path);
[[nodiscard]] bool file_exists(const std::string& path);
[[nodiscard]] bool is_pattern(const std::string& path);
/// What a shell pattern matches, in byte order, whatever the locale.
[[nodiscard]] std::vector<std::string> expand(const std::string& pattern);

}  // namespace lockstep::config
