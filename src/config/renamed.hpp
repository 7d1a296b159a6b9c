// Keys and values of the job file that had other names in earlier versions. If a job file uses an old name, the message
// gives the new one; jobs in checkpoints, which were valid when they were written, may have either.
#pragma once

#include <string>

#include "config/rule.hpp"

namespace lockstep::config {

/// The current name of a key; empty if it was never renamed. `path` ends with the key, "job.parallel.stages": in
/// another section, or in an op, the same word may be a valid key.
[[nodiscard]] std::string new_key(const std::string& path);
/// The same for a value of the key.
[[nodiscard]] std::string new_value(const std::string& path, const std::string& value);
/// A canonical form with the current names; the order of its keys is kept.
[[nodiscard]] Json renew(const Json& old);

}  // namespace lockstep::config
