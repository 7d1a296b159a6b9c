#include "train/start_facts.hpp"

#include "comm/reduce/host_leader.hpp"
#include "input/data_facts.hpp"
#include "optim/loss_scaling.hpp"
#include "train/fingerprint.hpp"
#include "train/job_graph.hpp"
#include "train/start_check.hpp"

namespace lockstep::train {

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
  progress.shards = run.job.shards;
  progress.job_digest = run.job.digest;
  progress.job = run.job.canonical;
  progress.data_digest = data.digest();
  progress.data_facts = input::data_facts(data);
  progress.fingerprint = fingerprint.text();
  progress.instructions = fingerprint.detail();
  progress.loss_scale = optim::first_loss_scale(run.job);
  progress.exactness = run.job.exact == Exactness::never ? kAllReduce : kBitwise;
  const std::vector<StartFact> facts = {
      {"job", run.job.digest, "give every rank the same job file and overrides"},
      {"data set", progress.data_digest, "copy the same data to every host"},
      {"program", run.options.program_digest, "install the same lockstep on every host"},
      of_bits("fingerprint", progress.fingerprint, progress.instructions),
  };
  compare(run, facts, progress);
  return progress;
}

void compare_bits(const RunContext& run, const std::string& name, const std::string& value,
                  checkpoint::Progress& progress) {
  compare(run, {of_bits(name, value, progress.instructions)}, progress);
}

}  // namespace lockstep::train
