// Folders that transformers' older, "slow" tokenizers have saved: vocab.txt of BERT, and vocab.json with merges.txt of
// GPT-2. They are put into the form of a tokenizer.json, as transformers itself converts them.
//
// Other models have files of these names, too, with rules that only their class in transformers knows. So what the
// folder says of its class, settings and added tokens must be of these two, or it is refused.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep::data {

/// What transformers can be told to do where a tokenizer cannot be read here.
inline constexpr const char* kConvertTokenizer =
    "transformers writes one: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)";

/// The text of a tokenizer.json. Throws Error(data) for a folder without these files, and for one that is refused.
[[nodiscard]] std::string tokenizer_of_vocabulary_files(const std::filesystem::path& folder);

}  // namespace lockstep::data
