// A trained model: trained, loaded, evaluated, used for predictions, saved and loaded again.
//   trained_model FOLDER
#include <lockstep/export.hpp>
#include <lockstep/trained_model.hpp>

#include <algorithm>
#include <array>
#include <cstddef>

#include "example.hpp"

namespace {

using namespace lockstep;

/// An image with a white bar down its middle.
Sample picture_of_a_one(const Feature& input) {
  Sample sample;
  sample.push_back({input.name, Tensor(input.spec)});
  const auto pixels = sample[0].tensor.as<std::uint8_t>();
  std::fill(pixels.begin(), pixels.end(), 0);
  const std::int64_t height = input.spec.shape[0], width = input.spec.shape[1];
  for (std::int64_t y = 4; y < height - 4; ++y) {
    for (std::int64_t x = width / 2 - 2; x < width / 2 + 2; ++x) pixels[static_cast<std::size_t>(y * width + x)] = 255;
  }
  return sample;
}

int train_and_use(const std::string& folder) {
  const Registries registries = Registries::built_in();
  const auto alone = make_single_communicator();
  const JobFile job = digits(registries, {"run_directory=" + folder + "/run", "checkpoint.every=1 epoch"});
  const TrainResult trained = train_job(job, *alone, registries);

  // From the run directory, where its job is found, too.
  TrainedModel model(load_job(job.run_directory, {}, registries), "newest", registries, *alone);
  const EvaluationResult evaluated = model.evaluate("validation");
  std::printf("step %lld, accuracy %.4f on %lld samples\n", static_cast<long long>(model.step()),
              evaluated.metrics.at("accuracy"), static_cast<long long>(evaluated.samples));

  std::vector<Sample> samples;
  samples.push_back(picture_of_a_one(model.inputs()[0]));
  const std::vector<Tensor> predictions = model.predict(samples);
  const std::vector<double> shares = probabilities(predictions[0].as<float>());
  const auto best = std::max_element(shares.begin(), shares.end()) - shares.begin();
  std::printf("a bar is '%s' with probability %.3f\n", model.data().class_names[static_cast<std::size_t>(best)].c_str(),
              shares[static_cast<std::size_t>(best)]);

  // The same without allocating, for a thread of a server: several threads have a Predictor each.
  Predictor predictor(model);
  const std::array<const std::byte*, 1> inputs{samples[0][0].tensor.bytes()};
  std::vector<float> scores(predictions[0].as<float>().size());
  predictor.predict(1, inputs, scores);
  if (!std::equal(scores.begin(), scores.end(), predictions[0].as<float>().begin())) return 1;

  export_model(job.run_directory, folder + "/digits.onnx", {.format = ExportFormat::onnx, .overwrite = true});
  const std::string file = folder + "/digits.safetensors";
  model.save(file);
  const TrainedModel again(job, file, registries, *alone);
  std::printf("%s\n", again.parameters_sha256().c_str());
  const bool same = again.parameters_sha256() == trained.parameters_sha256 && evaluated.metrics == trained.metrics;
  return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return run_example([&] { return train_and_use(argc > 1 ? argv[1] : "."); });
}
