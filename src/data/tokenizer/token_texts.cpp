#include "data/tokenizer/token_texts.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <memory>

#include "data/tokenizer/byte_characters.hpp"
#include "data/tokenizer/split_pattern.hpp"
#include "data/tokenizer/text_steps.hpp"

namespace lockstep::data {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

// Of English, in the library's order.
void clean_up(std::string& text) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kChanges = {{{" .", "."},
                                                                                              {" ?", "?"},
                                                                                              {" !", "!"},
                                                                                              {" ,", ","},
                                                                                              {" ' ", "'"},
                                                                                              {" n't", "n't"},
                                                                                              {" 'm", "'m"},
                                                                                              {" do not", " don't"},
                                                                                              {" 's", "'s"},
                                                                                              {" 've", "'ve"},
                                                                                              {" 're", "'re"}}};
  for (const auto& [from, to] : kChanges) replace_all(text, from, to);
}

TokenText read_word_piece_decoder(CheckedObject& step) {
  const auto prefix = step.get<std::string>("prefix", "a text");
  const bool cleans = step.get<bool>("cleanup", "true or false");
  return [=](std::string& text, bool first) {
    if (!first && text.starts_with(prefix)) {
      text.erase(0, prefix.size());
    } else if (!first) {
      text.insert(0, " ");
    }
    if (cleans) clean_up(text);
  };
}

TokenText read_metaspace_decoder(CheckedObject& step) {
  step.ignore("str_rep");
  step.ignore("split");
  const auto mark = step.get<std::string>("replacement", "a character");
  const bool spaced = step.get<bool>("add_prefix_space", "true or false", true);
  const bool strips = step.get<std::string>("prepend_scheme", "a name", spaced ? "always" : "never") != "never";
  return [=](std::string& text, bool first) { replace_all(text, mark, first && strips ? "" : " "); };
}

TokenText read_replace_decoder(CheckedObject& step) {
  const auto pattern = std::make_shared<const SplitPattern>(read_pattern(step), step.place_of("pattern"));
  const auto content = step.get<std::string>("content", "a text");
  return [=](std::string& text, bool) {
    const auto matches = pattern->matches(text);
    for (auto match = matches.rbegin(); match != matches.rend(); ++match) {
      text.replace(match->begin, match->end - match->begin, content);
    }
  };
}

/// <0x0A> is a byte.
void fall_back(std::string& text, bool) {
  unsigned byte = 0;
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return;
  const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
  if (error == std::errc{} && end == text.data() + 5) text = std::string(1, static_cast<char>(byte));
}

/// `whole`: what is stripped is the text, not each token.
TokenText read_strip_decoder(CheckedObject& step, bool whole) {
  const auto content = step.get<std::string>("content", "a character");
  const auto start = step.get<std::size_t>("start", "a number");
  const auto stop = step.get<std::size_t>("stop", "a number");
  return [=](std::string& text, bool first) {
    for (std::size_t i = 0; (first || !whole) && i < start && text.starts_with(content); ++i) {
      text.erase(0, content.size());
    }
    for (std::size_t i = 0; !whole && i < stop && text.ends_with(content); ++i) {
      text.resize(text.size() - content.size());
    }
  };
}

}  // namespace

bool DecoderSteps::read(CheckedObject& step, const std::string& type) {
  const bool of_wholes = type == "ByteLevel" || type == "Fuse" || type == "Strip";
  if (whole_ && !of_wholes) return false;
  if (type == "ByteLevel") {
    for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) step.ignore(key);
    all.emplace_back([](std::string& text, bool) { text = bytes_of_characters(text); });
    byte_level = whole_ = true;
  } else if (type == "Fuse") {
    whole_ = true;
  } else if (type == "Strip") {
    if (whole_ && step.optional("stop") != 0) return false;
    all.push_back(read_strip_decoder(step, whole_));
  } else if (type == "ByteFallback") {
    all.emplace_back(fall_back);
  } else if (type == "Replace") {
    all.push_back(read_replace_decoder(step));
  } else if (type == "Metaspace") {
    all.push_back(read_metaspace_decoder(step));
  } else if (type == "WordPiece") {
    all.push_back(read_word_piece_decoder(step));
  } else if (type == "BPEDecoder") {
    const auto suffix = step.get<std::string>("suffix", "a text", "</w>");
    all.emplace_back([suffix](std::string& text, bool) { replace_all(text, suffix, " "); });
    holds_space = true;
  } else {
    return false;
  }
  return true;
}

}  // namespace lockstep::data
