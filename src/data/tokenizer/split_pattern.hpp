// The regular expressions by which tokenizers split text into words, by PCRE2; only split_pattern.cpp includes it.
//
// They are written for Oniguruma with Ruby's syntax, which Hugging Face's `tokenizers` uses. What both read alike is
// taken; \s, \w, \d, \b, ^ and $ are written as what they mean there; anything else is refused.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

struct TextSpan {
  std::size_t begin = 0, end = 0;
};

class SplitPattern {
 public:
  /// Throws Error(data) that begins with `where`.
  SplitPattern(const std::string& pattern, std::string where);
  ~SplitPattern();
  SplitPattern(const SplitPattern&) = delete;
  SplitPattern& operator=(const SplitPattern&) = delete;

  /// Whether no match is empty or depends on what stands before it, so that text can be searched from any place.
  bool searches_forward() const { return searches_forward_; }
  /// The first match that begins at `from` or later, in text that is UTF-8. Throws Error(data) if PCRE2 gives up.
  std::optional<TextSpan> find(std::string_view text, std::size_t from) const;
  /// All matches, none of them empty directly behind another.
  std::vector<TextSpan> matches(std::string_view text) const;

 private:
  struct Code;
  std::unique_ptr<Code> code_;
  std::string where_;
  bool searches_forward_ = true;
};

}  // namespace lockstep::data
