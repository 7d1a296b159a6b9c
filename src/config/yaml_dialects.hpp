// What YAML 1.1 reads differently from YAML 1.2. Helm reads a job file by rules of 1.1, lockstep by those of 1.2: a
// scalar that has two meanings would train one thing on a laptop and another on a cluster.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/cursor.hpp"

namespace lockstep::config {

/// A plain scalar as YAML 1.1 or Helm reads it ("Helm reads as 8"), if that is not how `scalar_type` reads it.
[[nodiscard]] std::optional<std::string> other_reading(std::string_view scalar);

/// Reports every plain scalar and key below `node` that has two meanings, unless it was reported already. What comes
/// from the command line has one: Helm never sees it.
void refuse_ambiguous(const YamlNode& node, const std::string& path, Session& session);

}  // namespace lockstep::config
