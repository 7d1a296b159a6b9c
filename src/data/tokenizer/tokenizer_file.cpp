#include "data/tokenizer/tokenizer_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/whole_file.hpp"
#include "data/tokenizer/checked_json.hpp"
#include "data/tokenizer/tokenizer_reader.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

using Json = CheckedObject::Json;

std::string read_tokenizer_part(const std::filesystem::path& path, const char* expected) {
  auto text = read_whole_file(path.string());
  if (!text) throw Error(ExitCode::data, fmt::format("{}: cannot open; expected {}", path.string(), expected));
  return std::move(*text);
}

/// What a file is instead, as far as that can be seen.
std::string kind_of(const std::string& text) {
  if (text.starts_with('\n') && text.find('\0') != std::string::npos) return "a SentencePiece model";
  if (text.starts_with("\x1F\x8B")) return "a compressed file";
  if (text.starts_with("#version") || text.find(" e") < 20)
    return "merges of byte pairs; its folder, with vocab.json, is read";
  if (text.starts_with("[PAD]") || text.starts_with("[UNK]")) return "a vocabulary of WordPiece";
  const std::size_t space = text.find(' '), line = text.find('\n');
  static constexpr std::string_view kDigits = "0123456789\r";
  if (space < line && text.substr(space + 1, line - space - 1).find_first_not_of(kDigits) == std::string::npos) {
    return "ranks of tiktoken";
  }
  return "something else";
}

[[noreturn]] void refuse_kind(const std::string& where, const std::string& kind) {
  throw Error(
      ExitCode::data,
      fmt::format("{}: expected a tokenizer.json of Hugging Face's tokenizers, found {}; transformers writes one: "
                  "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)",
                  where, kind));
}

Json parse_tokenizer_json(const std::string& text, const std::string& where) {
  try {
    return Json::parse(text);
  } catch (const Json::exception&) {
    refuse_kind(where, kind_of(text));
  }
}

/// As the library's own conversion of GPT-2's files does.
std::string from_gpt2_files(const std::filesystem::path& folder) {
  Json vocabulary = parse_tokenizer_json(read_tokenizer_part(folder / "vocab.json", "GPT-2's vocabulary"),
                                         (folder / "vocab.json").string());
  Json merges = Json::array();
  const std::string text = read_tokenizer_part(folder / "merges.txt", "GPT-2's merges");
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty() && !line.starts_with("#version")) merges.push_back(std::move(line));
    at = end + 1;
  }
  Json added = Json::array();
  const auto end_of_text = vocabulary.is_object() ? vocabulary.find("<|endoftext|>") : vocabulary.end();
  if (end_of_text != vocabulary.end()) {
    added.push_back({{"id", *end_of_text}, {"content", "<|endoftext|>"}, {"special", true}});
  }
  const Json json = {{"version", "1.0"},
                     {"added_tokens", added},
                     {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
                     {"decoder", {{"type", "ByteLevel"}}},
                     {"model", {{"type", "BPE"}, {"vocab", std::move(vocabulary)}, {"merges", std::move(merges)}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string read_tokenizer_text(const std::string& path) {
  const std::filesystem::path given(path);
  if (!std::filesystem::is_directory(given)) return read_tokenizer_part(given, "a tokenizer.json");
  if (std::filesystem::exists(given / "tokenizer.json"))
    return read_tokenizer_part(given / "tokenizer.json", "a tokenizer.json");
  if (std::filesystem::exists(given / "vocab.json")) return from_gpt2_files(given);
  throw Error(
      ExitCode::data,
      fmt::format("{}: expected tokenizer.json, or vocab.json and merges.txt in this folder, found neither", path));
}

void require_tokenizer_like(const DataSetInfo* train, const std::string& text, const std::string& source) {
  if (train == nullptr || train->tokenizer == text) return;
  throw Error(ExitCode::data, fmt::format("{}: its tokenizer is not that of the training set, {}, so its tokens would "
                                          "mean something else",
                                          source, train->source));
}

std::unique_ptr<const TextTokenizer> parse_tokenizer(const std::string& text, const std::string& where) {
  const Json json = parse_tokenizer_json(text, where);
  if (json.is_object() && !json.contains("model")) refuse_kind(where, "JSON without the entry \"model\"");
  return std::make_unique<TextTokenizer>(read_tokenizer_parts(json, where));
}

}  // namespace lockstep::data
