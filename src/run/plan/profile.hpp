// A profile: the rates of a machine as measured by `lockstep bench device`, as a JSON file.
#pragma once

#include <string>

#include "run/plan/rates.hpp"

namespace lockstep::plan {

/// Indented, with a newline at the end.
[[nodiscard]] std::string profile_text(const Rates& rates);

/// Throws Error(usage) for a file that cannot be read, Error(data) for one that is not a profile; each names the file
/// and what was expected.
[[nodiscard]] Rates read_profile(const std::string& path);

}  // namespace lockstep::plan
