// Text to Node, strictly: one document, no tags, no key twice.
#pragma once

#include <string>

#include "config/cursor.hpp"
#include "config/node.hpp"

namespace lockstep::config {

/// Mistakes go to the session's problems. Aliases are replaced by copies of what they name.
[[nodiscard]] Node parse_yaml(const std::string& text, Session& session);
/// The value of an override; every mark says "command line". `option` is its key, for messages.
[[nodiscard]] Node parse_override(const std::string& text, const std::string& option, Session& session);

}  // namespace lockstep::config
