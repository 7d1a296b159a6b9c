#include "cli/opened_job.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "graph/model_graph.hpp"
#include "observe/telemetry/process_sample.hpp"
#include "run/train/job_graph.hpp"

namespace lockstep::cli {

namespace {

/// The memory of a rank's process beyond what `plan` itself uses once the data are open: code of kernels, threads,
/// files; with several ranks also MPI; and for each size of convolution the code that oneDNN generates. Measured:
/// docs/design/planning.md.
constexpr std::int64_t kProcessBytes = std::int64_t{6} << 20, kMpiBytes = std::int64_t{8} << 20,
                       kConvolutionBytes = std::int64_t{300} << 10;
/// The number of convolutions with different sizes.
std::int64_t convolutions_of(const Graph& graph) {
  std::set<std::pair<Shape, Shape>> sizes;
  for (const Node& node : graph.nodes) {
    if (node.op->name != "conv") continue;
    sizes.emplace(graph.at(node.inputs[0]).spec.shape, graph.at(node.parameters[0]).spec.shape);
  }
  return std::ssize(sizes);
}

plan::DataNeeds needs_of(const JobFile& job, const input::PreparedData& data, const Graph& graph) {
  plan::DataNeeds needs;
  for (const ValueId id : graph.inputs) needs.micro_batch += static_cast<std::int64_t>(graph.at(id).spec.bytes());
  needs.samples = data.train->size();
  needs.validation_samples = data.validation ? data.validation->size() : 0;
  const double steps_per_epoch = std::max(1.0, static_cast<double>(needs.samples) / job.batch_size);
  needs.epochs = job.steps > 0 ? job.steps / steps_per_epoch : job.epochs;
  if (job.data.depth > 0) needs.depth = job.data.depth;
  const auto& features = data.schema.info.features;
  const bool has_tokens =
      std::any_of(features.begin(), features.end(), [](const Feature& f) { return f.kind == Feature::Kind::tokens; });
  if (job.data.cache != SampleCache::memory || has_tokens) return needs;  // reading tokens copies them anyway
  if (needs.samples == 0) return needs;
  needs.cache = job.data.cache_bytes;
  Sample sample;
  data.train->read(0, sample);
  for (const NamedTensor& part : sample) {
    needs.cached_sample +=
        static_cast<std::int64_t>(part.tensor.spec().bytes() + part.tensor.shape().size() * sizeof(std::int64_t));
  }
  return needs;
}

plan::ModelSetup model_of(const JobFile& job, const input::PreparedData& data, const Graph& graph,
                          const exec::CpuDevice& device, bool on_gpus) {
  plan::ModelSetup model = plan::model_setup(graph, job, device, data.validation && !job.evaluate.never);
  model.on_gpus = on_gpus;
  if (on_gpus) model.packing.reset();  // a GPU packs no weights
  return model;
}

std::int64_t bytes_of_process(const Graph& graph, std::int64_t here, int ranks) {
  return here + kProcessBytes + convolutions_of(graph) * kConvolutionBytes + (ranks > 1 ? kMpiBytes : 0);
}

}  // namespace

OpenedJob::OpenedJob(const Registries& registries, const JobFile& job, int ranks, bool on_gpus)
    : OpenedJob(registries, job, input::learn(job.data, job.seed, job.batch_size, registries, {}), ranks, on_gpus) {}

OpenedJob::OpenedJob(const Registries& registries, JobFile job, input::PreparedData data, int ranks, bool on_gpus)
    : job_(std::move(job)),
      data_(std::move(data)),
      graph_(train::make_job_graph(job_, data_, registries)),
      lowered_(device_.lower(graph_, true)),
      resident_(telemetry::resident_bytes()),
      model_(model_of(job_, data_, lowered_, device_, on_gpus)),
      memory_(plan::memory_setup(model_, registries.optimizers, needs_of(job_, data_, lowered_),
                                 on_gpus ? 0 : bytes_of_process(lowered_, resident_, ranks))) {}

}  // namespace lockstep::cli
