// Wording of messages: lists of known words, and what an unknown key may have been meant for.
#pragma once

#include <string>
#include <vector>

#include "config/rule.hpp"

namespace lockstep::config {

/// "one of a, b, c"; "'a'" if there is only one.
[[nodiscard]] std::string one_of(const std::vector<std::string>& words);

/// "a, b or c"
[[nodiscard]] std::string or_list(const std::vector<std::string>& words);

/// For an unknown key: "; did you mean 'momentum'?" or "; 'momentum' belongs in job.optimizer.sgd", or nothing.
[[nodiscard]] std::string advice_for_key(const Rule& section, const Cursor& at, const std::string& key);

}  // namespace lockstep::config
