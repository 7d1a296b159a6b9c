// Text to YamlNode, strictly: one document, no tags, no duplicate keys.
#pragma once

#include <string>

#include "config/cursor.hpp"
#include "config/yaml_node.hpp"

namespace lockstep::config {

inline constexpr const char* kNoUtf8 = "expected text in UTF-8, found another encoding; write it in UTF-8";
/// Whether text can be stored in JSON, as in the canonical form, events and checkpoints.
[[nodiscard]] bool is_utf8(const std::string& text);

/// Mistakes are added to the session's problems. Aliases are replaced by copies of what they refer to.
[[nodiscard]] YamlNode parse_yaml(const std::string& text, Session& session);
/// The value of an override; all its marks are "command line". `option` is its key, for messages.
[[nodiscard]] YamlNode parse_override(const std::string& text, const std::string& option, Session& session);

}  // namespace lockstep::config
