// lockstep checkpoint job: a job file for a model of Hugging Face's.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/checkpoint_commands.hpp"
#include "tools/formats/huggingface_job.hpp"

namespace lockstep::cli {

void add_checkpoint_job(CLI::App& checkpoint, Action& run) {
  CLI::App* command = checkpoint.add_subcommand(
      "job", "Print a job file that trains on a model saved by transformers: GPT-2, Llama, BERT or ViT.");
  command->footer("Example:\n  lockstep checkpoint job vit-base > job.yaml");
  auto folder = std::make_shared<std::string>();
  command->add_option("FOLDER", *folder, "a folder with config.json, and with the weights")->required();
  command->callback([&run, folder] {
    run = [folder] {
      fmt::print("{}", formats::huggingface_job(*folder));
      return 0;
    };
  });
}

}  // namespace lockstep::cli
