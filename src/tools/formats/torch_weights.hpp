// A model's weights as PyTorch programs have them: one safetensors file with the names and orders of PyTorch, and of
// torchvision or transformers where these have the model.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/foreign_names.hpp"
#include "tools/formats/exported_model.hpp"

namespace lockstep::formats {

/// What is in a safetensors file beside its tensors: its format, and what the model knows of its data.
[[nodiscard]] std::map<std::string, std::string> weights_metadata(const ExportedModel& model,
                                                                  const std::string& format);

/// The bytes of a safetensors file with the model's own names and orders.
[[nodiscard]] std::string lockstep_weights(const ExportedModel& model);

/// The bytes of a safetensors file. `foreign`: whose names; null: the model's own, as torch_name() has them. Weights
/// of linear layers behind a flatten have their columns in the order channel, height, width. Throws Error(usage) where
/// it is not known which ones are, and where two tensors would have one name.
[[nodiscard]] std::string torch_weights(const ExportedModel& model, const ForeignModel* foreign);

/// The weights, with torchvision's names where it has the model, and a Python file that builds and loads it. `file`:
/// the name of the weights' file.
[[nodiscard]] std::vector<ExportedFile> torch_files(const ExportedModel& model, const std::string& file);

/// What from_pretrained() of transformers reads: model.safetensors, config.json, and what prepares samples
/// (huggingface_preparation.hpp). Throws Error(usage) for a model
/// that transformers does not have.
[[nodiscard]] std::vector<ExportedFile> huggingface_files(const ExportedModel& model);

/// What an adapter of PEFT says beside its tensors.
struct PeftSettings {
  std::int64_t rank = 0;
  double alpha = 0, dropout = 0;
  std::string base;  ///< of the model that is adapted
};
/// What from_pretrained() of PEFT reads: adapter_config.json and adapter_model.safetensors, with the adapters of a
/// model that transformers has and the modules that were trained beside them. Throws Error(usage) for another model,
/// and for parameters that were trained and are no whole module, or are shared.
[[nodiscard]] std::vector<ExportedFile> peft_files(const ExportedModel& model, const PeftSettings& settings);

}  // namespace lockstep::formats
