// What transformers does to a sample before the model: of images preprocessor_config.json, of texts tokenizer.json and
// tokenizer_config.json.
#pragma once

#include <vector>

#include "tools/formats/exported_model.hpp"

namespace lockstep::formats {

/// None for what transformers has no files for, such as tokens whose text is not known. Steps of `prepare` that it
/// cannot do in their order are only named there, so that it refuses images of another size.
[[nodiscard]] std::vector<ExportedFile> huggingface_preparation(const ExportedModel& model);

}  // namespace lockstep::formats
