// From the JSON of a tokenizer.json to what it says.
#pragma once

#include <string>

#include "data/tokenizer/tokenizer.hpp"
#include "data/tokenizer/tokenizer_json.hpp"

namespace lockstep::data {

/// Throws Error(data) that begins with `where` and names everything that is not known.
[[nodiscard]] TokenizerParts read_tokenizer_parts(TokenizerJson json, const std::string& where);

}  // namespace lockstep::data
