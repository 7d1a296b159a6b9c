#include "lockstep/trainer.hpp"

#include "core/flight_recorder.hpp"
#include "graph/models/zoo.hpp"
#include "lockstep/error.hpp"
#include "ops/registry.hpp"
#include "train/catalogue.hpp"
#include "train/training.hpp"

namespace lockstep {

namespace {

// What the rank was in when a wait missed its deadline.
void dump(const Job& job, Communicator& communicator) {
  const auto recorder = communicator.recorder();
  if (!recorder) return;
  const int rank = communicator.rank();
  (void)dump_flight(*recorder, job.run_directory + "/flight", rank, communicator.topology().host_name(rank));
}

}  // namespace

Registries Registries::built_in() {
  Registries registries;
  ops::add_built_in(registries.ops);
  models::add_built_in(registries.models);
  registries.augmentations = built_in_augmentations();
  return registries;
}

Job load_job(const std::string& path, const std::vector<std::string>& overrides, const Registries& registries) {
  const auto catalogue = train::catalogue_of(registries);
  return path.empty() ? config::default_job(overrides, catalogue) : config::load(path, overrides, catalogue, true);
}

TrainResult train_job(const Job& job, Communicator& communicator, const Registries& registries,
                      const TrainerOptions& options, const DataSets& data) {
  try {
    return train::Training(job, communicator, registries, options, data).run();
  } catch (const Error& error) {
    if (error.code() == ExitCode::infrastructure && communicator.size() > 1) dump(job, communicator);
    throw;
  }
}

}  // namespace lockstep
