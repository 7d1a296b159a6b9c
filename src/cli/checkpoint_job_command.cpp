// lockstep checkpoint job: a job file for a model of Hugging Face's.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/checkpoint_commands.hpp"
#include "core/say.hpp"
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
      std::vector<std::string> warnings;
      fmt::print("{}", formats::huggingface_job(*folder, warnings));
      std::fflush(stdout);
      for (const auto& warning : warnings) say("warning: {}\n", warning);
      return 0;
    };
  });
}

}  // namespace lockstep::cli
