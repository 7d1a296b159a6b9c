#include "run/ensemble/outcome.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "data/augment.hpp"
#include "graph/model_graph.hpp"
#include "lockstep/error.hpp"
#include "run/train/evaluation.hpp"
#include "run/train/job_graph.hpp"
#include "step/exec/cpu_device.hpp"
#include "step/exec/worker_pool.hpp"

namespace lockstep::ensemble {

namespace {

constexpr const char* kPrediction = "prediction";

/// A sample is a prediction and its target.
class Outcomes final : public DataSet {
 public:
  Outcomes(const std::vector<float>& predictions, std::size_t width, const SetTargets& targets)
      : predictions_(predictions), width_(width), targets_(targets) {
    info_.features = {{kPrediction, Feature::Kind::tensor, {DType::f32, {static_cast<std::int64_t>(width)}}},
                      targets.feature};
  }
  const DataSetInfo& info() const override { return info_; }
  std::int64_t size() const override { return predictions_.size() / width_; }
  void read(std::int64_t id, Sample& out) const override {
    out.clear();
    for (const Feature& feature : info_.features) out.push_back({feature.name, Tensor(feature.spec)});
    const std::size_t sample = id;
    std::copy_n(predictions_.data() + sample * width_, width_, out[0].tensor.as<float>().begin());
    const std::size_t bytes = targets_.feature.spec.bytes();
    std::copy_n(targets_.bytes.data() + sample * bytes, bytes, out[1].tensor.bytes());
  }

 private:
  const std::vector<float>& predictions_;
  std::size_t width_;
  const SetTargets& targets_;
  DataSetInfo info_;
};

}  // namespace

SetTargets targets_of(const DataSet& set, const Job& job) {
  const auto& features = set.info().features;
  const std::string name = target_feature(job.loss.target, features);
  const auto found = std::find_if(features.begin(), features.end(), [&](const auto& f) { return f.name == name; });
  SetTargets targets{*found, {}};
  const std::size_t bytes = targets.feature.spec.bytes();
  targets.bytes.resize(set.size() * bytes);
  const bool by_label = targets.feature.kind == Feature::Kind::label && targets.feature.name == "label";
  Sample sample;
  for (std::int64_t id = 0; id < set.size(); ++id) {
    std::byte* const out = targets.bytes.data() + id * bytes;
    const std::int32_t label = by_label ? set.label(id) : -1;
    if (label >= 0) {
      std::memcpy(out, &label, sizeof label);
      continue;
    }
    const bool is_image = targets.feature.kind != Feature::Kind::tensor;
    is_image ? set.read(id, sample) : set.read_without_images(id, sample);
    std::copy_n(sample.at(found - features.begin()).tensor.bytes(), bytes, out);
  }
  return targets;
}

Targets as_numbers(const SetTargets& targets, const train::LoadedModel& model) {
  const TensorSpec& spec = targets.feature.spec;
  const bool whole = spec.dtype == DType::i32;
  if (!whole && spec.dtype != DType::f32) {
    throw Error(ExitCode::usage, fmt::format("ensemble: expected targets of i32 or f32, found {} of {}",
                                             targets.feature.name, name_of(spec.dtype)));
  }
  const std::size_t width = spec.elements();
  std::vector<double> all(targets.bytes.size() / 4);
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::int32_t integer = 0;
    float real = 0;
    std::memcpy(whole ? static_cast<void*>(&integer) : &real, targets.bytes.data() + i * 4, 4);
    all[i] = whole ? integer : static_cast<double>(real);
  }
  if (meaning_of(*model.outputs().front().loss) != Meaning::classes) {
    const auto scales = model.scales();
    return {{}, std::move(all), scales.empty() ? std::vector<double>() : scales.begin()->second.stddev};
  }
  Targets numbers;
  for (std::size_t at = 0; at < all.size(); at += width) {  // soft labels stand for their likeliest class
    const auto best = largest_of(std::span(all).subspan(at, width));
    numbers.classes.push_back(whole ? all[at] : static_cast<double>(best));
  }
  return numbers;
}

std::map<std::string, double> metrics_of(const std::vector<float>& predictions, std::size_t width,
                                         const SetTargets& targets, const JobFile& job, const input::PreparedData& data,
                                         const Registries& registries) {
  const Outcomes set(predictions, width, targets);
  const std::int64_t micro_batch_samples = job.batch_size / job.micro_batches;
  GraphBuilder builder(registries.ops, micro_batch_samples);
  const ValueId prediction = builder.input(kPrediction, set.info().features[0].spec);
  const ValueId target = builder.input(targets.feature.name, targets.feature.spec);
  builder.graph().output = prediction;
  const Compared in_units{prediction, target};
  Compared of_loss = in_units;
  if (const auto scales = train::scales_of(job, data, registries.ops); !scales.empty()) {
    of_loss = {normalized(builder, prediction, scales.begin()->second, "normalized prediction"),
               normalized(builder, target, scales.begin()->second, "normalized target")};
  }
  add_loss_and_metrics(builder, of_loss, in_units, job.loss, job.metrics, targets.feature.classes);
  const Graph graph = std::move(builder.graph());
  const auto alone = make_single_communicator();
  const exec::CpuDevice device;
  exec::WorkerPool pool(1);
  train::Evaluation evaluation(graph, set, data::Pipeline(set.info().features, {}, registries.augmentations), *alone,
                               device, pool,
                               {.micro_batch_samples = micro_batch_samples, .timeout = job.timeout(), .once = true});
  const exec::TensorBlock parameters(graph, graph.parameters), states(graph, graph.states);
  return evaluation.run({parameters, states}, 0);
}

}  // namespace lockstep::ensemble
