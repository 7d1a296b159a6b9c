// A tokenizer.json that tests change: all bytes, and a few pairs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/readers/utf8.hpp"
#include "data/tokenizer/tokenizer_file.hpp"

namespace lockstep::test {

/// Tokens 0 to 255 are the bytes, in the order of the characters that stand for them; then the pairs, then <|end|>.
inline nlohmann::ordered_json byte_tokenizer(const std::vector<std::pair<std::string, std::string>>& pairs) {
  nlohmann::ordered_json vocabulary, merges = nlohmann::ordered_json::array();
  int next = 0;
  for (char32_t c = 0; c < 0x144; ++c) {
    const bool stands_for_a_byte = (c >= 33 && c <= 126) || (c >= 161 && c <= 172) || (c >= 174);
    if (stands_for_a_byte) vocabulary[data::to_utf8(c)] = next++;
  }
  for (const auto& [left, right] : pairs) {
    vocabulary[left + right] = next++;
    merges.push_back(left + " " + right);
  }
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens",
           {{{"id", next},
             {"content", "<|end|>"},
             {"single_word", false},
             {"lstrip", false},
             {"rstrip", false},
             {"normalized", false},
             {"special", true}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer",
           {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}}},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false},
            {"vocab", vocabulary},
            {"merges", merges}}}};
}

inline std::string decoded(const data::TextTokenizer& tokenizer, const std::vector<std::int32_t>& tokens) {
  auto decoder = tokenizer.decoder();
  std::string text;
  for (const auto token : tokens) text += decoder.next(token);
  return text;
}

}  // namespace lockstep::test
