// A tokenizer.json in memory. A vocabulary has 250,000 entries and its merges are twice as many, so these two are read
// past the tree of JSON, which would take most of the time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/tokenizer/checked_json.hpp"

namespace lockstep::data {

/// Pairs of texts, all in one.
class TextPairs {
 public:
  void add(std::string_view left, std::string_view right) {
    texts_ += left;
    const std::size_t middle = texts_.size();
    texts_ += right;
    ends_.push_back({middle, texts_.size()});
  }
  std::size_t size() const { return ends_.size(); }
  std::pair<std::string_view, std::string_view> operator[](std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1].right;
    const std::string_view all(texts_);
    return {all.substr(begin, ends_[i].left - begin), all.substr(ends_[i].left, ends_[i].right - ends_[i].left)};
  }

 private:
  struct Ends {
    std::size_t left, right;
  };
  std::string texts_;
  std::vector<Ends> ends_;
};

struct TokenizerJson {  // NOLINT(bugprone-exception-escape): moving the tree throws nothing
  /// By themselves only if they have the expected form; otherwise they are in the tree, for messages.
  std::optional<std::vector<std::pair<std::string, std::int64_t>>> vocabulary;  ///< model.vocab, in its order
  std::optional<TextPairs> merges;                                              ///< model.merges
  CheckedObject::Json tree;  ///< all the rest; model.vocab is an empty object, model.merges an empty list
};

/// Throws nlohmann's parse_error for text that is not JSON.
[[nodiscard]] TokenizerJson parse_tokenizer_json(const std::string& text);

}  // namespace lockstep::data
