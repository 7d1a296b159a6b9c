#include "train/start_facts.hpp"

#include <fmt/format.h>

#include "backend/device.hpp"
#include "lockstep/version.hpp"
#include "train/start_check.hpp"

namespace lockstep::train {

Progress begin_progress(const RunContext& run, const PreparedData& data) {
  const auto device = backend::cpu_info();
  Progress progress;
  progress.seed = run.job.seed;
  progress.shards = run.job.shards;
  progress.job_digest = run.job.digest;
  progress.job = run.job.canonical;
  progress.data_digest = data.digest();
  progress.fingerprint = fmt::format("{}; {}; {}", device.isa, device.libraries, version());
  const std::vector<StartFact> facts = {
      {"job", run.job.digest, "give every rank the same job file and overrides"},
      {"data set", progress.data_digest, "copy the same data to every host"},
      {"program", run.options.program_digest, "install the same lockstep on every host"},
      {"libraries", progress.fingerprint,
       "use one kind of processor and one version of the libraries, or set exact: preferred", true},
  };
  for (const auto& warning : compare_start(facts, run.job.exact == "required", run.communicator, run.timeout())) {
    run.emit("warning", {{"message", warning + "; the gradient is exact, but not bitwise the same"}});
  }
  return progress;
}

}  // namespace lockstep::train
