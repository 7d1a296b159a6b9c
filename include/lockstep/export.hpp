// Export: the model of a run for other programs, as `lockstep checkpoint export` writes it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/choices.hpp"
#include "lockstep/trainer.hpp"

namespace lockstep {

/// lockstep: a .safetensors file. torch: one with PyTorch's names and orders, and torchvision's where it has the model,
/// beside a Python file that loads it. huggingface: a folder for transformers. peft: a folder with the adapters of LoRA
/// alone. onnx: a file.
enum class ExportFormat : std::uint8_t { lockstep, torch, huggingface, peft, onnx };
template <>
inline constexpr std::array<std::string_view, 5> kNames<ExportFormat>{"lockstep", "torch", "huggingface", "peft",
                                                                      "onnx"};

struct ExportOptions {
  ExportFormat format = ExportFormat::lockstep;
  std::optional<bool> average = {};  ///< of the weights (optimizer.average); none: if the job evaluates it
  bool layers_only = false;          ///< onnx: the layers take normalised numbers and give their own
  bool overwrite = false;            ///< existing files
};

struct ExportedFiles {
  struct File {
    std::string path;
    std::uint64_t bytes = 0;
  };
  std::vector<File> files;
  std::string checkpoint;          ///< its directory
  std::string choice;              ///< "newest" or "best"; empty: it was given by its path
  std::int64_t merged_layers = 0;  ///< whose adapters of LoRA are merged into the weights
};

/// `from`: a checkpoint, a run's directory, or its folder of checkpoints. `target`: the file to write; of huggingface
/// and peft, the folder. `registries`: with what the run's job names; null: Registries::of_job(). Throws Error(data)
/// for a checkpoint that is missing or damaged, Error(cannot_create) for a file that exists or cannot be written,
/// Error(usage) for what the format cannot have.
ExportedFiles export_model(const std::string& from, const std::string& target, const ExportOptions& options = {},
                           const Registries* registries = nullptr);

}  // namespace lockstep
