#include "data/tokenizer/split_pattern.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <array>

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

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(ExitCode::data, fmt::format("{}: '{}' at character {} of the pattern {} is not supported", where_, what,
                                            at_ + 1, from_));
  }
  [[nodiscard]] bool continues(std::string_view what) const { return from_.compare(at_, what.size(), what) == 0; }
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
    // What a match is must not depend on what stands before it.
    if (c == '^') refuse("^");
    if (c == '$') refuse("$");  // the end of a line in one, of the text in the other
    for (const char* behind : {"(?<=", "(?<!", "(*"}) {
      if (continues(behind)) refuse(behind);
    }
    if (c == '{') return count();
    copy(1);
  }

  void escape() {
    static constexpr std::string_view kSame = "pPdDrntfv";
    const char c = at_ + 1 < from_.size() ? from_[at_ + 1] : '\0';
    if (c == 's' || c == 'S') {
      out_ += c == 's' ? "\\p{White_Space}" : "\\P{White_Space}";
      at_ += 2;
      return;
    }
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '\0';
    if (letter && kSame.find(c) == std::string_view::npos) refuse(from_.substr(at_, 2));
    const bool property = (c == 'p' || c == 'P') && at_ + 2 < from_.size() && from_[at_ + 2] == '{';
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
  bool in_class_ = false;
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
};

SplitPattern::SplitPattern(const std::string& pattern, std::string where)
    : code_(std::make_unique<Code>()), where_(std::move(where)) {
  const std::string text = Translation(pattern, where_).text();
  int error = 0;
  PCRE2_SIZE place = 0;
  code_->compiled.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), PCRE2_UTF | PCRE2_UCP,
                                      &error, &place, nullptr));
  if (!code_->compiled) {
    throw Error(ExitCode::data,
                fmt::format("{}: expected a regular expression, found {}: {}", where_, pattern, message_of(error)));
  }
  // Without a compiler for this machine PCRE2 interprets the pattern, with the same matches.
  (void)pcre2_jit_compile(code_->compiled.get(), PCRE2_JIT_COMPLETE);
}

SplitPattern::~SplitPattern() = default;

struct SplitPattern::Matcher::Memory {
  Held<pcre2_match_data, pcre2_match_data_free> match;
  Held<pcre2_match_context, pcre2_match_context_free> context;
  Held<pcre2_jit_stack, pcre2_jit_stack_free> stack;
};

SplitPattern::Matcher::Matcher(const SplitPattern& pattern) : pattern_(pattern), memory_(std::make_unique<Memory>()) {
  memory_->match.reset(pcre2_match_data_create_from_pattern(pattern.code_->compiled.get(), nullptr));
  memory_->context.reset(pcre2_match_context_create(nullptr));
  memory_->stack.reset(pcre2_jit_stack_create(32 << 10, 16 << 20, nullptr));
  LOCKSTEP_CHECK(memory_->match && memory_->context, "memory for PCRE2");
  if (memory_->stack) pcre2_jit_stack_assign(memory_->context.get(), nullptr, memory_->stack.get());
}

SplitPattern::Matcher::~Matcher() = default;

std::optional<TextSpan> SplitPattern::Matcher::find(std::string_view text, std::size_t from) {
  const int found =
      pcre2_match(pattern_.code_->compiled.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                  PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, memory_->match.get(), memory_->context.get());
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (found < 0) {
    throw Error(ExitCode::data,
                fmt::format("{}: PCRE2 gave up at byte {} of the text: {}", pattern_.where_, from, message_of(found)));
  }
  const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(memory_->match.get());
  return TextSpan{ends[0], ends[1]};
}

}  // namespace lockstep::data
