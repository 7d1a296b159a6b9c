// Lists of known words in messages.
#pragma once

#include <string>
#include <vector>

namespace lockstep::config {

/// "one of a, b, c"; "'a'" where there is only one.
[[nodiscard]] std::string one_of(const std::vector<std::string>& words);

/// "a, b or c"
[[nodiscard]] std::string or_list(const std::vector<std::string>& words);

}  // namespace lockstep::config
