#include "data/tokenizer/tokenizer_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "core/errno_code.hpp"
#include "core/files.hpp"
#include "data/tokenizer/tokenizer_json.hpp"
#include "data/tokenizer/tokenizer_reader.hpp"
#include "data/tokenizer/vocabulary_files.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

std::string read_tokenizer_part(const std::filesystem::path& path, const char* expected) {
  auto text = read_whole_file(path.string());
  if (!text) {
    throw Error(code_of_errno(errno, ExitCode::data),
                fmt::format("{}: cannot open; expected {}", path.string(), expected));
  }
  return std::move(*text);
}

/// What a file is instead, as far as that can be seen.
std::string kind_found(const std::string& text) {
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
  throw Error(ExitCode::data, fmt::format("{}: expected a tokenizer.json of Hugging Face's tokenizers, found {}; {}",
                                          where, kind, kConvertTokenizer));
}

}  // namespace

std::string read_tokenizer_text(const std::string& path) {
  const std::filesystem::path given(path);
  if (!std::filesystem::is_directory(given)) return read_tokenizer_part(given, "a tokenizer.json");
  if (std::filesystem::exists(given / "tokenizer.json"))
    return read_tokenizer_part(given / "tokenizer.json", "a tokenizer.json");
  return tokenizer_of_vocabulary_files(given);
}

void require_tokenizer_like(const DataSetInfo* train, const std::string& text, const std::string& source) {
  if (train == nullptr || train->tokenizer == text) return;
  throw Error(ExitCode::data, fmt::format("{}: its tokenizer is not that of the training set, {}, so its tokens would "
                                          "mean something else",
                                          source, train->source));
}

std::unique_ptr<const TextTokenizer> parse_tokenizer(const std::string& text, const std::string& where) {
  TokenizerJson json;
  try {
    json = parse_tokenizer_json(text);
  } catch (const nlohmann::json::exception&) {
    refuse_kind(where, kind_found(text));
  }
  if (json.tree.is_object() && !json.tree.contains("model")) refuse_kind(where, "JSON without the entry \"model\"");
  return std::make_unique<TextTokenizer>(read_tokenizer_parts(std::move(json), where));
}

}  // namespace lockstep::data
