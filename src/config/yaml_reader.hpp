// Text to YamlNode, strictly: one document, no tags, no key twice.
#pragma once

#include <string>

#include "config/cursor.hpp"
#include "config/yaml_node.hpp"

namespace lockstep::config {

inline constexpr const char* kNoUtf8 = "expected text in UTF-8, found another encoding; write it in UTF-8";
/// Whether text can be part of the canonical form, of events and of checkpoints, which are JSON.
[[nodiscard]] bool is_utf8(const std::string& text);

/// Mistakes go to the session's problems. Aliases are replaced by copies of what they name.
[[nodiscard]] YamlNode parse_yaml(const std::string& text, Session& session);
/// The value of an override; every mark is "command line". `option` is its key, for messages.
[[nodiscard]] YamlNode parse_override(const std::string& text, const std::string& option, Session& session);

}  // namespace lockstep::config
