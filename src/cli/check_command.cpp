#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "cli/commands.hpp"
#include "cli/job_argument.hpp"
#include "input/prepared_data.hpp"
#include "train/job_graph.hpp"

namespace lockstep::cli {

namespace {

double step_of(std::int64_t shards) {
  return 100.0 / static_cast<double>(shards);
}

void print_shares(const JobFile& job, const config::Catalogue& catalogue) {
  const auto counted = [](std::int64_t count, const char* thing) {
    return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
  };
  fmt::print("batch_size {} in {} of {}: at most {}{}; a rank's share moves in steps of {:.1f} %\n", job.batch_size,
             counted(job.shards, "shard"), counted(job.batch_size / job.shards, "sample"), counted(job.shards, "rank"),
             config::max_parts(job) > 1 ? " for each part of the model" : "", step_of(job.shards));
  const auto explanation = config::explain_shards(job, catalogue);
  if (!explanation.empty()) fmt::print("{}\n", explanation);
  const bool says_so = !explanation.empty() && job.shards == 1;
  if (const auto finer = config::finer_batch(job, catalogue); finer && !says_so) {
    fmt::print("batch_size {} can be {} shards of {} samples: steps of {:.1f} %\n", finer->batch_size, finer->shards,
               finer->batch_size / finer->shards, step_of(finer->shards));
  }
}

int check(JobArgument& argument, bool need_data) {
  const Registries registries = Registries::built_in();
  const config::Catalogue catalogue = train::catalogue_of(registries);
  const JobFile job = argument.load(catalogue, need_data);
  if (need_data) {
    const auto data = input::prepare_data(job.data, job.seed, job.batch_size, registries.augmentations, {});
    const Graph graph = train::make_job_graph(job, data, registries);
    std::int64_t parameters = 0;
    for (const ValueId id : graph.parameters) parameters += graph.at(id).spec.elements();
    fmt::print("{} training samples, {} validation samples, {} parameters\n", data.train->size(),
               data.validation ? data.validation->size() : 0, parameters);
  }
  print_shares(job, catalogue);
  fmt::print("{}: ok\n", argument.file.empty() ? "the embedded digits" : argument.file);
  return 0;
}

}  // namespace

void add_check(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand("check", "Check a job file, its data and its model, and train nothing.");
  command->footer("Example:\n  lockstep check examples/cifar10-resnet20.yaml --no-data");
  auto argument = std::make_shared<JobArgument>();
  auto no_data = std::make_shared<bool>(false);
  argument->add_to(*command);
  command->add_flag("--no-data", *no_data, "do not read the data");
  command->callback([&run, argument, no_data] { run = [argument, no_data] { return check(*argument, !*no_data); }; });
}

}  // namespace lockstep::cli
