// Keys and values of the job file that had other names in earlier versions. Where a job file has an old name, the
// message says the new one; the jobs of checkpoints, which were right when they were written, are read with both.
#pragma once

#include <string>

#include "config/rule.hpp"

namespace lockstep::config {

/// The name that a key has now; empty where it never had another. `path` ends with the key, "job.parallel.stages": in
/// another section, or of an op, the same word may be somebody's own.
[[nodiscard]] std::string new_key(const std::string& path);
/// The same for a value of the key.
[[nodiscard]] std::string new_value(const std::string& path, const std::string& value);
/// A canonical form with the names of now, its keys in the same order.
[[nodiscard]] Json renew(const Json& old);

}  // namespace lockstep::config
