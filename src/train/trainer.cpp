#include "lockstep/trainer.hpp"

#include "graph/models/zoo.hpp"
#include "ops/registry.hpp"
#include "train/training.hpp"

namespace lockstep {

Registries Registries::built_in() {
  Registries registries;
  ops::add_built_in(registries.ops);
  models::add_built_in(registries.models);
  registries.augmentations = built_in_augmentations();
  return registries;
}

TrainResult train_job(const Job& job, Communicator& communicator, const Registries& registries,
                      const TrainerOptions& options, const DataSets& data) {
  return train::Training(job, communicator, registries, options, data).run();
}

}  // namespace lockstep
