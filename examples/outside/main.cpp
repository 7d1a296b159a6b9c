// Trains a small network on two spirals: once alone, once on three ranks (threads of this process), and says
// whether both ended with the same bits.
//   spirals points.txt
#include <lockstep/error.hpp>
#include <lockstep/trainer.hpp>

#include <cstdio>
#include <filesystem>

#include "leaky_relu.hpp"
#include "points_file.hpp"

namespace {

using lockstep::Attributes;

lockstep::LayerOptions layer(const std::string& op, Attributes attributes) {
  lockstep::LayerOptions options;
  options.op = op;
  options.attributes = std::move(attributes);
  return options;
}

/// What a job file would say. The attributes are completed from the ops' declarations.
lockstep::Job make_job() {
  lockstep::Job job;
  job.name = "spirals";
  const auto hidden = [] { return layer("linear", Attributes({{"features", std::int64_t{32}}})); };
  const auto leaky = [] { return layer("leaky_relu", Attributes({{"slope", 0.1}})); };
  job.model.layers = {hidden(), leaky(), hidden(), leaky(),
                      layer("linear", Attributes({{"features", std::int64_t{2}}}))};
  job.batch_size = 48;
  job.shards = 6;
  job.epochs = 100;
  job.metrics = {"accuracy"};
  job.optimizer.kind = "adam";
  job.learning_rate.peak = 0.01;
  job.checkpoint.never = true;
  return job;
}

lockstep::TrainResult train(int ranks, const std::string& path, const lockstep::Registries& registries) {
  const lockstep::DataSets data{.train = std::make_shared<PointsFile>(path, 0, 2),
                                .validation = std::make_shared<PointsFile>(path, 1, 2)};
  lockstep::Job job = make_job();
  job.run_directory = std::filesystem::temp_directory_path() / ("spirals-" + std::to_string(ranks));
  std::filesystem::remove_all(job.run_directory);
  lockstep::TrainResult result;
  lockstep::run_in_threads(ranks, [&](lockstep::Communicator& communicator) {
    const auto mine = lockstep::train_job(job, communicator, registries, {}, data);
    if (communicator.rank() == 0) result = mine;
  });
  return result;
}

int run(const std::string& path) {
  lockstep::Registries registries = lockstep::Registries::built_in();
  registries.ops.add(make_leaky_relu());
  const auto alone = train(1, path, registries);
  const auto three = train(3, path, registries);
  std::printf("accuracy %.3f after %lld steps\n", alone.metrics.at("accuracy"), static_cast<long long>(alone.steps));
  std::printf("1 rank   %s\n3 ranks  %s\n", alone.parameters_sha256.c_str(), three.parameters_sha256.c_str());
  return alone.parameters_sha256 == three.parameters_sha256 && alone.metrics.at("accuracy") >= 0.95 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: spirals points.txt\n");
    return 64;
  }
  try {
    return run(argv[1]);
  } catch (const lockstep::Error& error) {
    std::fprintf(stderr, "spirals: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}
