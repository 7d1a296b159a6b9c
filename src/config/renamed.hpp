// Keys and values of the job file that had other names: the message about an old one gives the new one.
#pragma once

#include <string>

namespace lockstep::config {

/// The current name of a key; empty if it was never renamed. `path` ends with the key, "job.parallel.stages": in
/// another section, or in an op, the same word may be a valid key.
[[nodiscard]] std::string new_key(const std::string& path);
/// The same for a value of the key.
[[nodiscard]] std::string new_value(const std::string& path, const std::string& value);
}  // namespace lockstep::config
