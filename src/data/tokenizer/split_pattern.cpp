#include "data/tokenizer/split_pattern.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>

#include "data/readers/utf8.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

/// Copies a pattern, character by character, and looks at what the two libraries may read differently.
class Translation {
 public:
  Translation(const std::string& pattern, const std::string& where) : from_(pattern), where_(where) {}

  std::string text() {
    while (at_ < from_.size()) step();
    return out_;
  }
  bool looks_behind() const { return looks_behind_; }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(ExitCode::data, fmt::format("{}: '{}' at character {} of the pattern {} is not supported", where_, what,
                                            at_ + 1, from_));
  }
  bool continues(std::string_view what) const { return from_.compare(at_, what.size(), what) == 0; }
  void copy(std::size_t count) {
    out_ += from_.substr(at_, count);
    at_ += count;
  }

  void step() {
    const char c = from_[at_];
    if (c == '\\') return escape();
    if (in_class_) {
      if (c == '[' || continues("&&")) refuse(from_.substr(at_, c == '[' ? 1 : 2));
      in_class_ = c != ']';
      return copy(1);
    }
    if (c == '[') {
      in_class_ = true;
      return copy(continues("[^") ? 2 : 1);
    }
    if (c == '^' || c == '$') return look(c == '^' ? "(?m:^)" : "(?m:$)", 1);  // always of lines there
    if (continues("(*")) refuse("(*");
    if (continues("(?")) return group();
    if (c == '{') return count();
    copy(1);
  }

  void look(std::string_view as, std::size_t count) {
    looks_behind_ = true;
    out_ += as;
    at_ += count;
  }

  // Options of the two differ, and reach differently far unless they stand at the beginning or have a colon.
  void group() {
    for (const char* same : {"(?:", "(?=", "(?!", "(?>", "(?i:", "(?-i:"}) {
      if (continues(same)) return copy(std::string_view(same).size());
    }
    if (continues("(?<=") || continues("(?<!")) {
      looks_behind_ = true;
      return copy(4);
    }
    if (at_ == 0 && continues("(?i)")) return copy(4);
    refuse(from_.substr(at_, std::min(from_.find_first_of(":)", at_), at_ + 8) + 1 - at_));
  }

  void replace_escape(std::string_view as) {
    out_ += as;
    at_ += 2;
  }

  void escape() {
    static constexpr std::string_view kSame = "pPdDrntfvAzx";
    static constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
    const char c = at_ + 1 < from_.size() ? from_[at_ + 1] : '\0';
    if (c == 's') return replace_escape(R"(\p{White_Space})");
    if (c == 'S') return replace_escape(R"(\P{White_Space})");
    if (c == 'w' && in_class_) return replace_escape(kWord);
    // By itself it is these six of Latin-1, too.
    const std::string word = fmt::format(R"([{}\x{{B2}}\x{{B3}}\x{{B9}}\x{{BC}}-\x{{BE}}])", kWord);
    if (c == 'w') return replace_escape(word);
    if (c == 'W' && !in_class_) return replace_escape("[^" + word.substr(1));
    if (c == 'b' && !in_class_) return look(fmt::format("(?:(?<={0})(?!{0})|(?<!{0})(?={0}))", word), 2);
    if (c == 'A') looks_behind_ = true;
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '\0';
    if (letter && kSame.find(c) == std::string_view::npos) refuse(from_.substr(at_, 2));
    const bool property = (c == 'p' || c == 'P' || c == 'x') && at_ + 2 < from_.size() && from_[at_ + 2] == '{';
    const std::size_t end = property ? from_.find('}', at_) : at_ + 1;
    copy(end == std::string::npos ? from_.size() - at_ : end + 1 - at_);
  }

  // {1,3}+ repeats the repetition in one of the two and forbids to go back in the other.
  void count() {
    const std::size_t end = from_.find('}', at_);
    if (end == std::string::npos) refuse("{");
    if (end + 1 < from_.size() && from_[end + 1] == '+') refuse(from_.substr(at_, end + 2 - at_));
    copy(end + 1 - at_);
  }

  const std::string& from_;
  const std::string& where_;
  std::string out_;
  std::size_t at_ = 0;
  bool in_class_ = false, looks_behind_ = false;
};

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

template <auto release>
struct Release {
  template <class T>
  void operator()(T* held) const {
    release(held);
  }
};
template <class T, auto release>
using Held = std::unique_ptr<T, Release<release>>;

}  // namespace

struct SplitPattern::Code {
  Held<pcre2_code, pcre2_code_free> compiled;
  decltype(&pcre2_match) match = nullptr;  ///< pcre2_jit_match, which checks nothing first, where it can be used
};

SplitPattern::SplitPattern(const std::string& pattern, std::string where)
    : code_(std::make_unique<Code>()), where_(std::move(where)) {
  Translation translation(pattern, where_);
  const std::string text = translation.text();
  int error = 0;
  PCRE2_SIZE place = 0;
  code_->compiled.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), PCRE2_UTF | PCRE2_UCP,
                                      &error, &place, nullptr));
  if (!code_->compiled) {
    throw Error(ExitCode::data,
                fmt::format("{}: expected a regular expression, found {}: {}", where_, pattern, message_of(error)));
  }
  std::uint32_t may_be_empty = 0;
  (void)pcre2_pattern_info(code_->compiled.get(), PCRE2_INFO_MATCHEMPTY, &may_be_empty);
  searches_forward_ = may_be_empty == 0 && !translation.looks_behind();
  // Without a compiler for this machine PCRE2 interprets the pattern, with the same matches.
  const bool compiled = pcre2_jit_compile(code_->compiled.get(), PCRE2_JIT_COMPLETE) == 0;
  code_->match = compiled ? pcre2_jit_match : pcre2_match;
}

SplitPattern::~SplitPattern() = default;

namespace {

/// Memory of one thread's matches; only the whole match is asked for.
struct MatchMemory {
  Held<pcre2_match_data, pcre2_match_data_free> match{pcre2_match_data_create(1, nullptr)};
  Held<pcre2_match_context, pcre2_match_context_free> context{pcre2_match_context_create(nullptr)};
  Held<pcre2_jit_stack, pcre2_jit_stack_free> stack{pcre2_jit_stack_create(32 << 10, 16 << 20, nullptr)};

  MatchMemory() {
    LOCKSTEP_CHECK(match && context, "memory for PCRE2");
    if (stack) pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

}  // namespace

std::optional<TextSpan> SplitPattern::find(std::string_view text, std::size_t from) const {
  static thread_local const MatchMemory kMemory;
  const int found = code_->match(code_->compiled.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                 PCRE2_NO_UTF_CHECK, kMemory.match.get(), kMemory.context.get());
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (found < 0) {
    throw Error(ExitCode::data,
                fmt::format("{}: PCRE2 gave up at byte {} of the text: {}", where_, from, message_of(found)));
  }
  const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(kMemory.match.get());
  return TextSpan{ends[0], ends[1]};
}

std::vector<TextSpan> SplitPattern::matches(std::string_view text) const {
  std::vector<TextSpan> all;
  for (std::size_t at = 0; at <= text.size();) {
    const auto found = find(text, at);
    if (!found) break;
    if (found->begin == found->end && !all.empty() && all.back().end == found->end) {
      at += at < text.size() ? utf8_length(text[at]) : 1;
      continue;
    }
    all.push_back(*found);
    at = found->end;
  }
  return all;
}

}  // namespace lockstep::data
