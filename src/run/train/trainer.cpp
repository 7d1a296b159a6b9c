#include "lockstep/trainer.hpp"

#include <filesystem>

#include "graph/zoo.hpp"
#include "lockstep/error.hpp"
#include "observe/observers.hpp"
#include "ops/registry.hpp"
#include "run/checkpoint/saved_model.hpp"
#include "run/train/catalogue.hpp"
#include "run/train/plugins.hpp"
#include "run/train/training.hpp"
#include "step/optim/registry.hpp"

namespace lockstep {

Registries Registries::built_in() {
  Registries registries;
  ops::add_built_in(registries.ops);
  models::add_built_in(registries.models);
  optim::add_built_in(registries.optimizers);
  optim::add_built_in(registries.schedules);
  registries.augmentations = built_in_augmentations();
  return registries;
}

Registries Registries::of_job(const std::string& path, const std::vector<std::string>& overrides) {
  return train::registries_of({path}, overrides);
}

JobFile load_job(const std::string& path, const std::vector<std::string>& overrides, const Registries& registries,
                 bool need_data) {
  const auto catalogue = train::catalogue_of(registries);
  if (path.empty()) return config::default_job(overrides, catalogue, need_data);
  if (std::filesystem::is_directory(path)) return checkpoint::load_saved_job(path, overrides, catalogue, need_data);
  return config::load(path, overrides, catalogue, need_data);
}

TrainResult train_job(const JobFile& job, Communicator& communicator, const Registries& registries,
                      const TrainerOptions& options, const DataSets& data) {
  const JobFile whole = config::completed(job, train::catalogue_of(registries));
  try {
    return train::Training(whole, communicator, registries, options, data).run();
  } catch (const Error& error) {
    if (error.code() == ExitCode::infrastructure) observe::write_flight(whole.run_directory, communicator);
    throw;
  }
}

}  // namespace lockstep
