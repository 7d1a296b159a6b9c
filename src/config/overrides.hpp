// Overrides: `optimizer.adamw.beta2=0.99` on the command line, written into the tree before it is parsed.
#pragma once

#include <string>
#include <vector>

#include "config/rule.hpp"

namespace lockstep::config {

/// Sets each `key=value` below `job`. Of several alternatives, the others are removed.
void apply_overrides(YamlNode& job, const Rule& rule, const std::vector<std::string>& overrides, Session& session);

/// "model.layers[2].conv" to {"model", "layers", "[2]", "conv"}; empty where it is no path.
[[nodiscard]] std::vector<std::string> split_path(const std::string& path);

}  // namespace lockstep::config
