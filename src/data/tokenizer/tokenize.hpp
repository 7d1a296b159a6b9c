// `lockstep data tokenize`: writes the tokens of texts as a file that `data: tokens` reads, with the tokenizer beside
// it. The bytes do not depend on threads, nor on how often the writing was broken off and gone on with.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::data {

struct TokenizeOptions {
  std::vector<std::string> paths;  ///< a text each, unless it is empty; .jsonl: one in each line
  std::string field = "text";      ///< .jsonl: which entry of a line
  std::string tokenizer;           ///< a file, or a folder (read_tokenizer_text())
  std::string end;                 ///< an added token to write after each text; empty: none
  std::string output;
  int threads = 0;                     ///< 0: as many as this process may use
  std::int64_t piece_bytes = 1 << 20;  ///< of text, that a thread encodes at once
  double note_seconds = 2;             ///< how often it is noted how far the file is written
  std::function<void(std::int64_t done, std::int64_t all)> progress;  ///< bytes of text; called now and then, if set
};

struct Tokenized {
  std::int64_t tokens = 0, bytes = 0;  ///< bytes of text
  std::int64_t resumed = 0;            ///< of them, those that an earlier run had done
  std::int64_t vocabulary = 0;
};

/// Writes `output` and tokenizer_beside(output). Until it is whole, the file is `output`.partial, and
/// `output`.partial.json says how far it is; a later run with the same texts and settings goes on there.
/// Throws Error(cannot_create) if `output` exists, Error(data) for texts and tokenizers that cannot be read,
/// Error(infrastructure) if writing fails.
Tokenized tokenize(const TokenizeOptions& options);

/// The text of tokens first ... first + count - 1 of a file with a tokenizer beside it; count -1: all the rest. `take`
/// gets it piece by piece, without special tokens.
void detokenize(const std::string& path, std::int64_t first, std::int64_t count,
                const std::function<void(const std::string&)>& take);

}  // namespace lockstep::data
