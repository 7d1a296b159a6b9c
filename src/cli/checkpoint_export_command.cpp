// lockstep checkpoint export: the model alone, as lockstep's own file or as other programs read it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/checkpoint_commands.hpp"
#include "cli/validators.hpp"
#include "core/words.hpp"
#include "lockstep/export.hpp"
#include "observe/telemetry/text.hpp"

namespace lockstep::cli {

namespace {

struct ExportArguments {
  std::string from, target, to = "lockstep", weights = "auto";
  bool force = false, raw = false;
};

int write(const ExportArguments& arguments) {
  ExportOptions options{
      .format = value_of<ExportFormat>(arguments.to), .layers_only = arguments.raw, .overwrite = arguments.force};
  if (arguments.weights != "auto") options.average = arguments.weights == "average";
  const ExportedFiles made = export_model(arguments.from, arguments.target, options);
  for (const auto& file : made.files) {
    const bool first = &file == &made.files.front();
    fmt::print("wrote {}: {}{}\n", file.path,
               !first ? ""
                      : fmt::format("the model of {}, {}", made.checkpoint,
                                    made.choice.empty() ? "" : fmt::format("the {} checkpoint, ", made.choice)),
               byte_count(file.bytes));
  }
  if (made.merged_layers > 0) {
    fmt::print("merged the adapters of {} into the weights\n", telemetry::counted(made.merged_layers, "layer"));
  }
  return 0;
}

}  // namespace

void add_checkpoint_export(CLI::App& checkpoint, Action& run) {
  CLI::App* command = checkpoint.add_subcommand(
      "export", "Write the model, without optimizer state, as a safetensors file, for PyTorch, or as ONNX.");
  command->footer(
      "Examples:\n  lockstep checkpoint export runs/digits digits.safetensors\n"
      "  lockstep checkpoint export runs/digits/checkpoints/best digits.onnx --to onnx\n"
      "  lockstep checkpoint export runs/gpt gpt --to huggingface");
  auto arguments = std::make_shared<ExportArguments>();
  command->add_option("CHECKPOINT", arguments->from, kCheckpointPlaceHelp)->required();
  command->add_option("FILE", arguments->target, "the file to write; for huggingface and peft the folder")->required();
  command
      ->add_option(
          "--to", arguments->to,
          "lockstep: a safetensors file; torch: one with PyTorch's names and orders, and torchvision's where "
          "it has the model, with a Python file that loads it; huggingface: a folder for transformers; peft: a "
          "folder with the adapters of LoRA alone; onnx")
      ->check(one_of({"lockstep", "torch", "huggingface", "peft", "onnx"}))
      ->capture_default_str();
  command
      ->add_option("--weights", arguments->weights,
                   "trained, or their average (optimizer.average); auto: those that the job evaluates")
      ->check(one_of({"auto", "trained", "average"}))
      ->capture_default_str();
  command->add_flag("--raw", arguments->raw,
                    "onnx: the layers alone, which take normalised numbers and give their own");
  command->add_flag("--force", arguments->force, "overwrite existing files");
  command->callback([&run, arguments] { run = [arguments] { return write(*arguments); }; });
}

}  // namespace lockstep::cli
