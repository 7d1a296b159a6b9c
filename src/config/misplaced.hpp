// Advice for an unknown key: a near one, or the place where the key belongs.
#pragma once

#include <string>

#include "config/rule.hpp"

namespace lockstep::config {

/// "; did you mean 'momentum'?" or "; 'momentum' belongs in job.optimizer.sgd", or nothing.
[[nodiscard]] std::string advice_for_key(const Rule& section, const Cursor& at, const std::string& key);

}  // namespace lockstep::config
