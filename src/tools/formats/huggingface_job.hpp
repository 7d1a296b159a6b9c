// A job file for a model that transformers has saved: the zoo's model of the same sizes, with its weights.
#pragma once

#include <string>
#include <vector>

namespace lockstep::formats {

/// YAML, of which the user fills in the data. `folder`: with config.json, and with the weights and the tokenizer if
/// they are there. Throws Error(data) if it is none of GPT-2, Llama, BERT and ViT, or has something that lockstep's
/// lacks. `warnings` gets what is done otherwise here.
[[nodiscard]] std::string huggingface_job(const std::string& folder, std::vector<std::string>& warnings);

}  // namespace lockstep::formats
