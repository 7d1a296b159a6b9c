// Overrides: `optimizer.adamw.beta2=0.99` on the command line, written into the tree before it is read.
#pragma once

#include <string>
#include <vector>

#include "config/rule.hpp"

namespace lockstep::config {

/// Sets each `key=value` below `job`. Setting one of several alternatives removes the others.
void apply_overrides(YamlNode& job, const Rule& rule, const std::vector<std::string>& overrides, Session& session);

/// "model.layers[2].conv" -> {"model", "layers", "[2]", "conv"}; empty if it is not a path.
[[nodiscard]] std::vector<std::string> split_path(const std::string& path);

}  // namespace lockstep::config
