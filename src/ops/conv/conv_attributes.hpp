// Shared by conv and conv_transpose: the settings that they have alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/attributes.hpp"

namespace lockstep::ops {

[[nodiscard]] AttributeSpec filters_attribute();
/// dilation, groups, bias, and those of first values, of which `initializer` is the default.
[[nodiscard]] std::vector<AttributeSpec> further_conv_attributes(const std::string& initializer);

/// Throws Error(configuration) that begins with `op` unless `groups` divides `count`.
void require_groups(const std::string& op, const char* what, std::int64_t count, std::int64_t groups);

}  // namespace lockstep::ops
