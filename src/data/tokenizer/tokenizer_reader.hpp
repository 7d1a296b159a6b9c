// From the JSON of a tokenizer.json to what it says.
#pragma once

#include <string>

#include "data/tokenizer/checked_json.hpp"
#include "data/tokenizer/tokenizer.hpp"

namespace lockstep::data {

/// Throws Error(data) that begins with `where` and names everything that is not known.
[[nodiscard]] TokenizerParts read_tokenizer_parts(const CheckedObject::Json& json, const std::string& where);

}  // namespace lockstep::data
