// config.json of Hugging Face's transformers: what the outputs of a model are called.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

/// The names in `id2label`, the JSON of that setting, in the order of the outputs; empty where they say nothing
/// (LABEL_0, ...), or it is no object. nullopt if they are not different names of the numbers from 0 on.
[[nodiscard]] std::optional<std::vector<std::string>> label_names(const std::string& id2label);

/// These names of the model in the folder `from`, or in that of the file `from`; empty if nothing tells them.
[[nodiscard]] std::vector<std::string> output_names_at(const std::string& from);

}  // namespace lockstep::checkpoint
