// A tokenizer.json in memory. A vocabulary has 250,000 entries and its merges are twice as many, so these two are read
// past the tree of JSON, which would take most of the time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/tokenizer/checked_json.hpp"

namespace lockstep::data {

struct TokenizerJson {
  /// By themselves only if they have the expected form; otherwise they are in the tree, for messages.
  std::optional<std::vector<std::pair<std::string, std::int64_t>>> vocabulary;  ///< model.vocab, in its order
  std::optional<std::vector<std::pair<std::string, std::string>>> merges;       ///< model.merges
  CheckedObject::Json tree;  ///< all the rest; model.vocab is an empty object, model.merges an empty list
};

/// Throws nlohmann's parse_error for text that is not JSON.
[[nodiscard]] TokenizerJson parse_tokenizer_json(const std::string& text);

}  // namespace lockstep::data
