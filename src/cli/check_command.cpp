#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <utility>

#include "cli/commands.hpp"
#include "cli/job_argument.hpp"
#include "cli/opened_job.hpp"
#include "core/say.hpp"
#include "data/input/foreseen_data.hpp"
#include "device/threads.hpp"
#include "observe/telemetry/text.hpp"
#include "run/checkpoint/saved_model.hpp"
#include "run/plan/limits.hpp"
#include "run/plan/report.hpp"
#include "run/train/catalogue.hpp"
#include "run/train/device_choice.hpp"
#include "run/train/job_warnings.hpp"
#include "run/train/same_run.hpp"

namespace lockstep::cli {

namespace {

double step_of(std::int64_t micro_batches) {
  return 100.0 / micro_batches;
}

void print_shares(const JobFile& job, const config::Catalogue& catalogue) {
  fmt::print("batch_size {} in {} of {}: at most {}{}; a rank's share moves in steps of {:.1f} %\n", job.batch_size,
             telemetry::counted(job.micro_batches, "micro-batch"),
             telemetry::counted(job.batch_size / job.micro_batches, "sample"),
             telemetry::counted(job.micro_batches, "rank"),
             config::max_parts(job) > 1 ? " for each part of the model" : "", step_of(job.micro_batches));
  const auto explanation = config::explain_micro_batches(job, catalogue);
  if (!explanation.empty()) fmt::print("{}\n", explanation);
  const bool says_so = !explanation.empty() && job.micro_batches == 1;
  if (const auto finer = config::finer_batch(job, catalogue); finer && !says_so) {
    fmt::print("batch_size {} can be {} micro-batches of {} samples: steps of {:.1f} %\n", finer->batch_size,
               finer->micro_batches, finer->batch_size / finer->micro_batches, step_of(finer->micro_batches));
  }
}

void warn(const std::string& message) {
  say("warning: {}\n", message);
}

void report_device(const JobFile& job) {
  if (job.device != DeviceChoice::cuda) return;
  try {
    const device::GpuInfo gpu =
        train::choose_gpu(job, train::ask_gpu_facts(), {.host = "this machine", .has_own = false});
    fmt::print("device {}\n", device::text_of(gpu));
  } catch (const Error& error) {
    warn(fmt::format("this machine cannot train it: {}", error.what()));
  }
}

/// For one rank, however many are asked for later: with more, each has as much or less. `besides`: what is not in it.
void report_memory(const OpenedJob& opened, const std::string& besides = "") {
  const JobFile& job = opened.job();
  plan::Choice choice = plan::choice_of(job);
  choice.parallel = {};
  const plan::RankSetup one = plan::ranks_of_one_host(1, job.threads, device::available_cores());
  const auto needs = plan::memory_of(plan::place_model(opened.model(), one, choice), opened.memory()).front();
  const std::string needed = plan::size_text(needs.charged());
  if (opened.model().on_gpus) {
    fmt::print("memory {} of a GPU, on one rank{}\n", needed, besides);
    return;
  }
  const std::int64_t here = plan::memory_of_host();
  fmt::print("memory {} on one rank{}\n", needed, besides);
  if (needs.charged() <= here) return;
  warn(fmt::format("one rank needs {}, and this machine has {}; `lockstep plan` says what fits", needed,
                   plan::size_text(here)));
}

std::string parameters_text(const Graph& graph) {
  std::int64_t parameters = 0, trained = 0;
  for (const ValueId id : graph.parameters) {
    const Value& value = graph.at(id);
    parameters += value.spec.elements();
    if (!value.frozen) trained += value.spec.elements();
  }
  return fmt::format("{} parameters{}", parameters,
                     trained < parameters ? fmt::format(", of which {} are trained", trained) : "");
}

void warn_of_graph(const OpenedJob& opened) {
  for (const std::string& message : train::job_warnings(opened.graph(), opened.data())) warn(message);
}

void report_data_and_model(const OpenedJob& opened, bool need_files) {
  const input::PreparedData& data = opened.data();
  fmt::print("{} training samples, {} validation samples, {}\n", data.train->size(),
             data.validation ? data.validation->size() : 0, parameters_text(opened.graph()));
  if (const auto weights = data.weights_text(); !weights.empty()) fmt::print("weights {}\n", weights);
  if (const auto& initialize = opened.job().initialize; initialize && need_files) {
    const auto found =
        checkpoint::check_initialization(*initialize, opened.job().place_of("job.initialize.only"), opened.graph());
    const auto warning = train::require_same_reading(opened.job(), found, data);
    if (!warning.empty()) warn(warning);
    fmt::print("{} tensors come from {}{}, {} begin as usual\n", found.from_file, initialize->from,
               found.chosen.empty() ? "" : fmt::format(" ({})", found.chosen), found.first_values);
  }
  for (const std::string& message : data.warnings()) warn(message);
  warn_of_graph(opened);
}

/// As far as the job alone tells the sizes of the model.
void report_without_data(const JobFile& job, const Registries& registries, bool on_gpus) {
  input::ForeseenData foreseen = input::foresee_data(job.data, job.model, job.seed, registries, registries.models);
  if (!foreseen.unknown.empty()) {
    fmt::print("memory not known without the data: it depends on {}\n", foreseen.unknown);
    return;
  }
  const OpenedJob opened(registries, job, std::move(foreseen.data), 1, on_gpus);
  fmt::print("{}\n", parameters_text(opened.graph()));
  warn_of_graph(opened);
  report_memory(opened, ", besides the data that are kept");
}

int check(JobArgument& argument, bool need_data) {
  const Registries registries = argument.registries();
  const JobFile job = argument.load(registries, need_data);
  const bool on_gpus = job.device == DeviceChoice::cuda;
  if (need_data || input::are_drawn(job.data)) {
    const OpenedJob opened(registries, job, 1, on_gpus);
    report_data_and_model(opened, need_data);
    report_memory(opened);
  } else {
    report_without_data(job, registries, on_gpus);
  }
  print_shares(job, train::catalogue_of(registries));
  report_device(job);
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
