// predictions RUN SAMPLES [WEIGHTS]: what a run's model, or one with the weights of a file, makes of random samples,
// for tests of exports. Writes one JSON object: "inputs" by name {"shape", "values"}, before the job's preparation, and
// "predictions" {"shape", "values"}.
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "lockstep/random.hpp"
#include "lockstep/trained_model.hpp"
#include "run/checkpoint/saved_model.hpp"
#include "run/train/catalogue.hpp"

namespace lockstep {
namespace {

/// Numbers of i32 are from `first` on, `count` different ones.
Tensor random_tensor(const Feature& feature, std::int64_t first, std::int64_t count, RandomStream& random) {
  Tensor tensor(feature.spec);
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (feature.spec.dtype == DType::u8) {
      tensor.as<std::uint8_t>()[at] = static_cast<std::uint8_t>(random.unit() * 256);
    } else if (feature.spec.dtype == DType::i32) {
      tensor.as<std::int32_t>()[at] = static_cast<std::int32_t>(static_cast<double>(first) +
                                                                std::floor(random.unit() * static_cast<double>(count)));
    } else {
      const auto number = static_cast<float>(random.unit() * 2 - 1);
      if (feature.spec.dtype == DType::f64) {
        tensor.as<double>()[at] = number;
      } else {
        tensor.as<float>()[at] = number;
      }
    }
  }
  return tensor;
}

nlohmann::json values_of(const Tensor& tensor) {
  nlohmann::json values = nlohmann::json::array();
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (tensor.dtype() == DType::u8) {
      values.push_back(tensor.as<std::uint8_t>()[at]);
    } else if (tensor.dtype() == DType::i32) {
      values.push_back(tensor.as<std::int32_t>()[at]);
    } else {
      values.push_back(tensor.dtype() == DType::f64 ? tensor.as<double>()[at] : tensor.as<float>()[at]);
    }
  }
  return values;
}

int write_predictions(const std::string& run, int count, const std::string& weights) {
  const Registries registries = Registries::built_in();
  const auto communicator = make_single_communicator();
  const JobFile job = checkpoint::load_saved_job(run, {"device=cpu"}, train::catalogue_of(registries), false);
  TrainedModel model(job, weights, registries, *communicator);
  RandomStream random(1, 2);
  std::vector<Sample> samples(static_cast<std::size_t>(count));
  nlohmann::json out;
  for (const Feature& feature : model.inputs()) {
    const bool length = feature.name == kLength;  // of the tokens, which are the first feature
    const std::int64_t numbers = length ? model.inputs().front().spec.shape[0] : model.data().vocabulary;
    nlohmann::json& input = out["inputs"][feature.name];
    input = {{"shape", feature.spec.shape}, {"values", nlohmann::json::array()}};
    for (Sample& sample : samples) {
      sample.push_back({feature.name, random_tensor(feature, length ? 1 : 0, numbers, random)});
      input["values"].push_back(values_of(sample.back().tensor));
    }
  }
  out["predictions"] = {{"shape", model.prediction_shape()}, {"values", nlohmann::json::array()}};
  for (const Tensor& prediction : model.predict(samples)) out["predictions"]["values"].push_back(values_of(prediction));
  std::cout << out.dump() << "\n";
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  if (argc < 3) return 64;
  try {
    return lockstep::write_predictions(argv[1], std::atoi(argv[2]), argc > 3 ? argv[3] : "newest");
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
