// Reads tokenizers: Hugging Face's tokenizer.json, and the older files of GPT-2 and BERT (vocabulary_files.hpp).
#pragma once

#include <string>

#include "data/tokenizer/tokenizer.hpp"
#include "lockstep/data_set.hpp"

namespace lockstep::data {

/// The text of the tokenizer.json that `path` names: the file itself, or a folder that holds it or the older files,
/// which are put into that form. Throws Error(data) that names what is missing.
[[nodiscard]] std::string read_tokenizer_text(const std::string& path);

/// Throws Error(data) that begins with `where` and names what is not known.
[[nodiscard]] std::unique_ptr<const TextTokenizer> parse_tokenizer(const std::string& text, const std::string& where);

/// Throws Error(data) that begins with `source` if the training set, unless it is null, has another tokenizer.
void require_tokenizer_like(const DataSetInfo* train, const std::string& text, const std::string& source);

/// Beside a file of tokens lies its tokenizer: tokens.bin.tokenizer.json.
[[nodiscard]] inline std::string tokenizer_beside(const std::string& tokens) {
  return tokens + ".tokenizer.json";
}
/// Bytes of a token in files of them.
[[nodiscard]] inline std::int64_t token_bytes(std::int64_t vocabulary) {
  return vocabulary > 65536 ? 4 : 2;
}

}  // namespace lockstep::data
