#include "run/train/start_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "comm/transport/host_leader.hpp"
#include "comm/transport/recorded.hpp"
#include "core/digest.hpp"
#include "core/spans.hpp"
#include "core/unfit_hosts.hpp"
#include "data/loader.hpp"
#include "graph/model_graph.hpp"
#include "lockstep/error.hpp"
#include "run/train/fingerprint.hpp"
#include "run/train/job_graph.hpp"
#include "run/train/plugins.hpp"
#include "step/optim/loss_scaling.hpp"

namespace lockstep::train {

namespace {

constexpr std::size_t kWidth = 256;                               // of a value or a detail
constexpr const char* kFirstMicroBatch = ", first micro-batch ";  // within a fingerprint

std::string cell(std::string text) {
  if (text.size() >= kWidth) text = sha256(text);
  text.resize(kWidth, '\0');
  return text;
}

std::string at(const std::string& table, std::size_t row) {
  const std::string padded = table.substr(row * kWidth, kWidth);
  return padded.substr(0, padded.find('\0'));
}

std::string with_detail(const std::string& value, const std::string& detail) {
  return detail.empty() ? value : fmt::format("{} ({})", value, detail);
}

std::string most_common(const std::vector<std::string>& values) {
  std::map<std::string, int> counts;
  for (const auto& value : values) ++counts[value];
  const std::string* best = &values.front();  // in a tie, rank 0's value wins
  for (const auto& [value, count] : counts) {
    if (count > counts[*best]) best = &value;
  }
  return *best;
}

// A host of which every rank differs is to blame for it; ranks that differ from others of their own host were started
// with other words.
[[noreturn]] void refuse(const std::vector<std::string>& values, const std::string& expected, const Topology& topology,
                         const std::string& message) {
  std::set<int> fit, odd;
  for (std::size_t r = 0; r < values.size(); ++r) (values[r] == expected ? fit : odd).insert(topology.host_of.at(r));
  std::vector<std::string> names;
  for (const int host : odd) {
    if (fit.contains(host)) throw Error(ExitCode::usage, message);
    names.push_back(topology.host_names.at(host));
  }
  throw UnfitHosts(std::move(names), message);
}

}  // namespace

std::vector<std::string> compare_start(const std::vector<StartFact>& facts, bool exact_required,
                                       Communicator& communicator, std::chrono::milliseconds timeout) {
  std::string mine;
  for (const auto& fact : facts) {
    mine += cell(fact.value);
    mine += cell(fact.detail);
  }
  const std::size_t ranks = communicator.size();
  std::string all(mine.size() * ranks, '\0');
  communicator.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                          {"start", 0, timeout});

  const Topology& topology = communicator.topology();
  std::vector<std::string> warnings;
  for (std::size_t f = 0; f < facts.size(); ++f) {
    std::vector<std::string> values, details;
    for (std::size_t r = 0; r < ranks; ++r) {
      values.push_back(at(all, 2 * (r * facts.size() + f)));
      details.push_back(at(all, 2 * (r * facts.size() + f) + 1));
    }
    const std::string expected = most_common(values);
    const std::size_t example = std::find(values.begin(), values.end(), expected) - values.begin();
    for (std::size_t r = 0; r < ranks; ++r) {
      if (values[r] == expected) continue;
      const std::string& host = topology.host_name(r);
      const std::string message =
          fmt::format("rank {} on {}: its {} differs: expected {}, found {}; {}", r, host, facts[f].name,
                      with_detail(expected, details[example]), with_detail(values[r], details[r]), facts[f].remedy);
      if (exact_required || !facts[f].bits_only) {
        if (!facts[f].of_host) throw Error(ExitCode::usage, message);
        refuse(values, expected, topology, message);
      }
      warnings.push_back(message);
    }
  }
  return warnings;
}

namespace {

StartFact of_bits(const std::string& name, const std::string& value, const std::string& detail) {
  return {name, value, "use one kind of processor or GPU and one version of the libraries, or set exact: preferred",
          true, detail};
}

void compare(const RunContext& run, const std::vector<StartFact>& facts, checkpoint::Progress& progress) {
  for (const auto& warning :
       compare_start(facts, run.job.exact == Exactness::required, run.communicator, comm::kStartDeadline)) {
    run.warn(warning);
    if (run.job.exact == Exactness::preferred) progress.exactness = kNotBitwise;
  }
}

}  // namespace

checkpoint::Progress begin_progress(const RunContext& run, const input::PreparedData& data,
                                    const std::vector<std::string>& algorithms) {
  Fingerprint fingerprint = take_fingerprint(run.device, precision_of(run.job));
  fingerprint.algorithms = digest_of(algorithms);
  checkpoint::Progress progress;
  progress.seed = run.job.seed;
  progress.micro_batches = run.job.micro_batches;
  progress.job_digest = run.canonical.digest;
  progress.job = run.canonical.text;
  progress.data_digest = data.digest();
  progress.schema = data.schema.text();
  progress.fingerprint = fingerprint.text();
  progress.instructions = fingerprint.detail();
  progress.plugins = plugins_text(run.registries.plugins);
  progress.loss_scale = optim::first_loss_scale(run.job.precision, run.job.loss_scale);
  progress.exactness = run.job.exact == Exactness::never ? kAllReduce : kBitwise;
  const std::vector<StartFact> facts = {
      {.name = "job",
       .value = run.canonical.digest,
       .remedy = "give every rank the same job file and overrides",
       .of_host = false},
      {"data set", progress.data_digest, "copy the same data to every host"},
      {"program", run.options.program_digest, "install the same lockstep on every host"},
      {"set of plugins", progress.plugins, "copy the same files to every host"},
      of_bits("fingerprint", progress.fingerprint, progress.instructions),
  };
  compare(run, facts, progress);
  return progress;
}

void compare_bits(const RunContext& run, const std::string& name, const std::string& value,
                  checkpoint::Progress& progress) {
  compare(run, {of_bits(name, value, progress.instructions)}, progress);
}

namespace {

data::LoaderOptions first_step_of(const RunContext& run, const Graph& graph) {
  const Job& job = run.job;
  data::LoaderOptions options;
  options.batch = job.batch_size;
  options.micro_batches = job.micro_batches;
  options.seed = job.seed;
  options.last_step = 1;
  options.threads = 1;
  options.depth = 1;
  options.inputs = input_names(graph);
  options.recorder = comm::recorder_of(run.communicator);
  return options;
}

std::string hash_of_first_micro_batch(const RunContext& run, const input::PreparedData& data, const Graph& graph,
                                      const exec::ExecutorOptions& how) {
  const Job& job = run.job;
  data::Loader loader(*data.train, data.pipeline(*data.train, true), first_step_of(run, graph));
  loader.assign(0, {0});
  // A separate executor: the run's own keeps, from its first use on, what its GPU fills inputs with.
  exec::WorkerPool pool(1);
  exec::Executor executor(graph, Mode::training, run.device, pool, job.seed, how);
  const double scale = optim::first_loss_scale(job.precision, job.loss_scale).scale;
  const double factor = scale > 0 ? scale / optim::targets_in_mean(graph, job.micro_batches) : 1;
  return hash_of_micro_batch(executor, graph, run.device, job.seed, loader, factor);
}

}  // namespace

double compare_first_micro_batch(const RunContext& run, const input::PreparedData& data, const Graph& graph,
                                 const exec::ExecutorOptions& how, checkpoint::Progress& progress) {
  if (run.job.exact == Exactness::never || !run.device.has_memory_to_spare()) return 0;
  const auto start = Clock::now();
  const ActivityScope activity(comm::recorder_of(run.communicator).get(), "first micro-batch", 0);
  const std::string hash = hash_of_first_micro_batch(run, data, graph, how);
  const double seconds = seconds_since(start);
  progress.fingerprint += kFirstMicroBatch + hash;
  compare_bits(run, "first micro-batch", "loss and gradients " + hash, progress);
  return seconds;
}

std::string without_first_micro_batch(const std::string& fingerprint) {
  return fingerprint.substr(0, fingerprint.find(kFirstMicroBatch));
}

std::optional<std::string> agreed_fingerprint(const std::string& one, const std::string& other) {
  if (one == other || one.starts_with(other + kFirstMicroBatch)) return one;
  if (other.starts_with(one + kFirstMicroBatch)) return other;
  return std::nullopt;
}

}  // namespace lockstep::train
