// The regular expressions by which tokenizers split text into words, by PCRE2; only split_pattern.cpp includes it.
//
// They are written for Oniguruma, the library of Hugging Face's `tokenizers`. What both read alike is taken, \s is
// written as the property White_Space, which is what it means there, and anything else is refused.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

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

  /// Memory of one thread's matches.
  class Matcher {
   public:
    explicit Matcher(const SplitPattern& pattern);
    ~Matcher();
    Matcher(const Matcher&) = delete;
    Matcher& operator=(const Matcher&) = delete;
    /// The first match that is not empty and begins at `from` or later, in text that is UTF-8. What stands before
    /// `from` makes no difference. Throws Error(data) if PCRE2 gives up.
    [[nodiscard]] std::optional<TextSpan> find(std::string_view text, std::size_t from);

   private:
    struct Memory;
    const SplitPattern& pattern_;
    std::unique_ptr<Memory> memory_;
  };

 private:
  struct Code;
  std::unique_ptr<Code> code_;
  std::string where_;
};

}  // namespace lockstep::data
