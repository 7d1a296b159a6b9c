// The pre-tokenizers of a tokenizer.json: each splits texts into smaller ones.
#include <algorithm>
#include <memory>

#include "data/readers/utf8.hpp"
#include "data/tokenizer/byte_characters.hpp"
#include "data/tokenizer/split_pattern.hpp"
#include "data/tokenizer/text_steps.hpp"
#include "data/tokenizer/unicode_text.hpp"
#include "lockstep/choices.hpp"

namespace lockstep::data {
namespace {

/// A part of a text, which is a match or lies between two.
struct Piece {
  TextSpan place;
  bool match = false;
};

enum class Behavior : std::uint8_t { removed, isolated, contiguous, merged_with_previous, merged_with_next };

std::vector<Piece> pieces_of(std::string_view text, const std::vector<TextSpan>& matches) {
  std::vector<Piece> pieces;
  std::size_t done = 0;
  for (const TextSpan& match : matches) {
    if (done != match.begin) pieces.push_back({{done, match.begin}, false});
    pieces.push_back({match, true});
    done = match.end;
  }
  if (done != text.size()) pieces.push_back({{done, text.size()}, false});
  return pieces;
}

/// A piece that `joins` the one before it makes one with it.
template <class Joins>
std::vector<Piece> joined(const std::vector<Piece>& pieces, const Joins& joins) {
  std::vector<Piece> all;
  bool before = false;  // whether the piece before was a match
  for (const Piece& piece : pieces) {
    if (!all.empty() && joins(piece.match, before)) {
      all.back().place = {std::min(all.back().place.begin, piece.place.begin),
                          std::max(all.back().place.end, piece.place.end)};
    } else {
      all.push_back(piece);
    }
    before = piece.match;
  }
  return all;
}

std::vector<Piece> split(std::vector<Piece> pieces, Behavior behavior) {
  switch (behavior) {
    case Behavior::isolated:
      return pieces;
    case Behavior::removed:
      std::erase_if(pieces, [](const Piece& piece) { return piece.match; });
      return pieces;
    case Behavior::contiguous:
      return joined(pieces, [](bool match, bool before) { return match == before; });
    case Behavior::merged_with_previous:
      return joined(pieces, [](bool match, bool before) { return match && !before; });
    case Behavior::merged_with_next:
      std::reverse(pieces.begin(), pieces.end());
      pieces = joined(pieces, [](bool match, bool before) { return match && !before; });
      std::reverse(pieces.begin(), pieces.end());
      return pieces;
  }
  return pieces;
}

/// Replaces each part by the pieces that `find(text)` says; empty ones vanish.
template <class Find>
PreTokenizer splitter(Find find) {
  return [find = std::move(find)](std::vector<TextPart>& parts) {
    std::vector<TextPart> all;
    all.reserve(parts.size());
    for (TextPart& part : parts) {
      for (const Piece& piece : find(part.text)) {
        const auto [begin, end] = piece.place;
        if (begin == 0 && end == part.text.size()) {
          if (end > 0) all.push_back(std::move(part));
          break;
        }
        if (begin < end) all.push_back({part.text.substr(begin, end - begin), part.at_start && begin == 0});
      }
    }
    parts = std::move(all);
  };
}

template <class Is>
PreTokenizer by_characters(Is is, Behavior behavior) {
  return splitter([is = std::move(is), behavior](std::string_view text) {
    std::vector<TextSpan> matches;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = at;
      if (is(next_character(text, at))) matches.push_back({begin, at});
    }
    return split(pieces_of(text, matches), behavior);
  });
}

PreTokenizer by_pattern(const std::string& pattern, std::string where, Behavior behavior, bool inverted) {
  auto compiled = std::make_shared<const SplitPattern>(pattern, std::move(where));
  return splitter([compiled = std::move(compiled), behavior, inverted](std::string_view text) {
    auto pieces = pieces_of(text, compiled->matches(text));
    for (Piece& piece : pieces) piece.match = piece.match != inverted;
    return split(std::move(pieces), behavior);
  });
}

Behavior read_behavior(CheckedObject& step, const char* absent) {
  const auto name = step.get<std::string>("behavior", "a name", absent);
  if (name == "Removed") return Behavior::removed;
  if (name == "Isolated") return Behavior::isolated;
  if (name == "Contiguous") return Behavior::contiguous;
  if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Behavior::merged_with_next;
  step.wrong("behavior", "Removed, Isolated, Contiguous, MergedWithPrevious or MergedWithNext",
             step.optional("behavior"));
}

PreTokenizer in_order(std::vector<PreTokenizer> steps) {
  return [steps = std::move(steps)](std::vector<TextPart>& parts) {
    for (const PreTokenizer& step : steps) step(parts);
  };
}

char32_t read_character(CheckedObject& step, const std::string& key) {
  const auto text = step.get<std::string>(key, "a character");
  std::size_t end = 0;
  const char32_t c = text.empty() ? 0 : next_character(text, end);
  if (text.empty() || end != text.size()) step.wrong(key, "a character", step.optional(key));
  return c;
}

PreTokenizer read_metaspace(CheckedObject& step) {
  step.ignore("str_rep");
  const char32_t mark = read_character(step, "replacement");
  const bool spaced = step.get<bool>("add_prefix_space", "true or false", true);
  const auto scheme = step.get<std::string>("prepend_scheme", "a name", spaced ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    step.wrong("prepend_scheme", "always, first or never", step.optional("prepend_scheme"));
  }
  const bool splits = step.get<bool>("split", "true or false", true);
  std::vector<PreTokenizer> steps;
  steps.emplace_back([text = to_utf8(mark), scheme](std::vector<TextPart>& parts) {
    for (TextPart& part : parts) {
      std::string marked;
      for (const char c : part.text) c == ' ' ? marked += text : marked += c;
      const bool prepends = scheme == "always" || (scheme == "first" && part.at_start);
      if (prepends && !marked.starts_with(text)) marked.insert(0, text);
      part.text = std::move(marked);
    }
  });
  if (splits) steps.push_back(by_characters([mark](char32_t c) { return c == mark; }, Behavior::merged_with_next));
  return in_order(std::move(steps));
}

PreTokenizer read_fixed_length(CheckedObject& step) {
  const auto length = step.get<std::size_t>("length", "a number", 5);
  if (length == 0) step.wrong("length", "a number from 1 on", step.optional("length"));
  return splitter([length](std::string_view text) {
    std::vector<Piece> pieces;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = at;
      for (std::size_t i = 0; i < length && at < text.size(); ++i) at += utf8_length(text[at]);
      pieces.push_back({{begin, at}, false});
    }
    return pieces;
  });
}

PreTokenizer read_split(CheckedObject& step) {
  const Behavior behavior = read_behavior(step, "");
  const bool inverted = step.get<bool>("invert", "true or false", false);
  return by_pattern(read_pattern(step), step.place_of("pattern"), behavior, inverted);
}

}  // namespace

PreTokenizer read_byte_level_words(CheckedObject& step) {
  step.ignore("trim_offsets");
  const bool spaced = step.get<bool>("add_prefix_space", "true or false");
  const bool splits = step.get<bool>("use_regex", "true or false", true);
  PreTokenizer words = splits ? by_pattern(kGpt2Words, step.place(), Behavior::isolated, false) : nullptr;
  if (!spaced) return words;
  return [words](std::vector<TextPart>& parts) {
    for (TextPart& part : parts) {
      if (!part.text.starts_with(' ')) part.text.insert(0, " ");
    }
    if (words) words(parts);
  };
}

PreTokenizer bytes_to_characters() {
  return [](std::vector<TextPart>& parts) {
    for (TextPart& part : parts) {
      std::string characters;
      append_byte_characters(characters, part.text);
      part.text = std::move(characters);
    }
  };
}

std::string read_pattern(CheckedObject& step) {
  CheckedObject what = step.object("pattern");
  std::string regex;
  if (what.optional("String").is_null()) {
    regex = what.get<std::string>("Regex", "a regular expression");
  } else {
    for (const char c : what.get<std::string>("String", "a text")) {
      if (std::string_view("\\.+*?()|[]{}^$#&-~").find(c) != std::string_view::npos) regex += '\\';
      regex += c;
    }
  }
  what.done();
  return regex;
}

PreTokenizer read_pre_tokenizer(CheckedObject& step, const std::string& type) {
  if (type == "BertPreTokenizer") {
    return in_order(
        {by_characters(is_white_space, Behavior::removed), by_characters(is_punctuation, Behavior::isolated)});
  }
  if (type == "ByteLevel") {
    const PreTokenizer words = read_byte_level_words(step);
    return words ? in_order({words, bytes_to_characters()}) : bytes_to_characters();
  }
  if (type == "Whitespace") {
    // \w is another library's here, which has two more characters.
    constexpr const char* kWords = R"([\w\x{200C}\x{200D}]+|[^\w\x{200C}\x{200D}\s]+)";
    return by_pattern(kWords, step.place(), Behavior::removed, true);
  }
  if (type == "WhitespaceSplit") return by_characters(is_white_space, Behavior::removed);
  if (type == "Punctuation") return by_characters(is_punctuation, read_behavior(step, "Isolated"));
  if (type == "Digits") {
    const bool single = step.get<bool>("individual_digits", "true or false");
    return by_characters(is_number, single ? Behavior::isolated : Behavior::contiguous);
  }
  if (type == "CharDelimiterSplit") {
    const char32_t delimiter = read_character(step, "delimiter");
    return by_characters([delimiter](char32_t c) { return c == delimiter; }, Behavior::removed);
  }
  if (type == "Metaspace") return read_metaspace(step);
  if (type == "Split") return read_split(step);
  if (type == "FixedLength") return read_fixed_length(step);
  return nullptr;
}

}  // namespace lockstep::data
