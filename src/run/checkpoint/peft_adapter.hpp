// Adapters of LoRA as Hugging Face's PEFT saves them: a folder with adapter_config.json and adapter_model.safetensors.
#pragma once

#include <string>

#include "lockstep/graph.hpp"
#include "run/checkpoint/safetensors.hpp"

namespace lockstep::checkpoint {

struct PeftAdapter {
  std::string base;  ///< where the model that it adapts is: as the adapter names it, from here or from its own folder
  SafetensorsFile tensors;
};

/// Whether the folder is one of PEFT.
[[nodiscard]] bool is_peft_adapter(const std::string& folder);

/// Throws Error(data) for adapters of another kind than those of `graph` (DoRA, biases, a rank for each layer), for
/// another factor alpha / rank, and for a base that is not there; Error(configuration) if the graph has no adapters.
[[nodiscard]] PeftAdapter read_peft_adapter(const std::string& folder, const Graph& graph);

}  // namespace lockstep::checkpoint
