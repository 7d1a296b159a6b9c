// Root keys of a job file beside `job`: the Helm chart's, so that one file serves both, and `jbo:` is noticed.
#pragma once

#include <string>
#include <vector>

namespace lockstep::config {

[[nodiscard]] const std::vector<std::string>& chart_keys();

}  // namespace lockstep::config
