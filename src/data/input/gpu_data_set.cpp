#include "data/input/gpu_data_set.hpp"

#include <algorithm>

#include "data/loader.hpp"
#include "device/gpu/input_stage.hpp"
#include "graph/model_graph.hpp"
#include "lockstep/error.hpp"

namespace lockstep::input {

namespace {

/// Samples of a set as the pipeline stores them: feature after feature.
class StoredPiece {
 public:
  StoredPiece(const DataSet& set, const data::Pipeline& pipeline, int workers, std::size_t piece_bytes)
      : set_(set), pipeline_(pipeline), workers_(workers) {
    std::size_t bytes = 1;
    for (const Feature& feature : pipeline.stored()) bytes += feature.spec.bytes();
    capacity_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(piece_bytes / bytes), 1, set.size());
    for (const Feature& feature : pipeline.stored()) {
      features_.emplace_back(capacity_ * feature.spec.bytes());
    }
    for (Worker& worker : workers_) worker.outputs.resize(features_.size());
  }

  /// Number of samples that fit.
  std::int64_t capacity() const { return capacity_; }
  /// Overwrites it with samples first ... first + count - 1.
  void read(std::int64_t first, std::int64_t count, exec::WorkerPool& pool) {
    pool.run(static_cast<int>(count), [&](int index, int at) {
      Worker& worker = workers_[index];
      set_.read(first + at, worker.sample);
      for (std::size_t i = 0; i < features_.size(); ++i) {
        worker.outputs[i] = features_[i].data() + at * pipeline_.stored()[i].spec.bytes();
      }
      pipeline_.store(worker.sample, first + at, worker.scratch, worker.outputs);
    });
  }
  std::span<const std::byte> feature(std::size_t index) const { return features_[index]; }

 private:
  struct Worker {
    Sample sample;
    data::PipelineScratch scratch;
    std::vector<std::byte*> outputs;
  };
  const DataSet& set_;
  const data::Pipeline& pipeline_;
  std::int64_t capacity_ = 0;
  std::vector<std::vector<std::byte>> features_;
  std::vector<Worker> workers_;
};

std::int64_t micro_batch_samples_of(const Graph& graph) {
  return graph.at(graph.inputs.front()).spec.shape.front();
}

std::vector<std::size_t> parts_of_micro_batch(const data::Pipeline& pipeline, const Graph& graph) {
  std::vector<std::size_t> bytes;
  for (const Feature& feature : pipeline.drawn()) {
    bytes.push_back(feature.spec.bytes() * micro_batch_samples_of(graph));
  }
  return bytes;
}

}  // namespace

std::size_t GpuDataSet::bytes(const DataSet& set, const data::Pipeline& pipeline, const Graph& graph) {
  std::size_t sample = 0;
  for (const std::size_t feature : data::find_features(input_names(graph), pipeline.stored())) {
    sample += pipeline.stored()[feature].spec.bytes();
  }
  return sample * set.size();
}

std::size_t GpuDataSet::drawn_bytes(const data::Pipeline& pipeline, const Graph& graph) {
  std::size_t bytes = 0;
  for (const std::size_t part : parts_of_micro_batch(pipeline, graph)) bytes += device::InputStage::up_to_part(part);
  return bytes;
}

GpuDataSet::GpuDataSet(const DataSet& set, const data::Pipeline& pipeline, const Graph& graph, device::Gpu& gpu,
                       std::shared_ptr<const GatherKernels> kernels, exec::WorkerPool& pool, std::size_t piece_bytes)
    : gpu_(gpu),
      kernels_(std::move(kernels)),
      stream_(gpu.make_stream()),
      copied_(gpu.make_event()),
      piece_bytes_(piece_bytes),
      pinned_(gpu, piece_bytes),
      part_bytes_(parts_of_micro_batch(pipeline, graph)) {
  const std::int64_t micro_batch_samples = micro_batch_samples_of(graph);
  for (const std::size_t feature : data::find_features(input_names(graph), pipeline.stored())) {
    Input& input = inputs_.emplace_back(input_of(pipeline, feature, micro_batch_samples));
    input.samples = device::GpuBlock(gpu, input.sample_bytes * set.size());
    if (input.functor.channels > 0) upload_scale(pipeline, input);
  }
  upload(set, pipeline, pool);
  pinned_ = {};
}

GpuDataSet::Input GpuDataSet::input_of(const data::Pipeline& pipeline, std::size_t feature,
                                       std::int64_t micro_batch_samples) const {
  const Feature &stored = pipeline.stored()[feature], &output = pipeline.outputs()[feature];
  Input input;
  input.feature = feature;
  input.sample_bytes = stored.spec.bytes();
  input.elements = static_cast<std::int64_t>(input.sample_bytes) * micro_batch_samples;
  if (stored.kind != Feature::Kind::image) return input;
  const Shape &from = stored.spec.shape, &to = output.spec.shape;
  input.elements = to[0] * to[1] * micro_batch_samples;
  input.functor.height = from[0], input.functor.width = from[1], input.functor.channels = from[2];
  input.functor.out_height = to[0], input.functor.out_width = to[1];
  input.functor.steps = pipeline.drawn_steps();
  if (input.functor.steps == 0) return input;
  const auto drawn = pipeline.drawn();
  const auto moves =
      std::find_if(drawn.begin() + 1, drawn.end(), [&](const Feature& part) { return part.name == stored.name; });
  input.moves = moves - drawn.begin();
  return input;
}

void GpuDataSet::upload_scale(const data::Pipeline& pipeline, Input& input) {
  const data::Pipeline::Scale& scale = pipeline.scale(input.feature);
  const std::size_t channels = input.functor.channels;
  std::vector<float> table(scale.factor.begin(), scale.factor.begin() + input.functor.channels);
  table.insert(table.end(), scale.shift.begin(), scale.shift.begin() + input.functor.channels);
  input.scale = device::GpuBlock(gpu_, table.size() * sizeof(float));
  copy_in(input.scale.get(), std::as_bytes(std::span(table)));
  input.functor.factors = input.scale.as<float>();
  input.functor.shifts = input.scale.as<float>() + channels;
}

void GpuDataSet::upload(const DataSet& set, const data::Pipeline& pipeline, exec::WorkerPool& pool) {
  StoredPiece piece(set, pipeline, pool.size(), piece_bytes_);
  for (std::int64_t first = 0; first < set.size(); first += piece.capacity()) {
    const std::int64_t count = std::min(piece.capacity(), set.size() - first);
    piece.read(first, count, pool);
    for (const Input& input : inputs_) {
      const std::size_t bytes = input.sample_bytes * count;
      copy_in(input.samples.get() + input.sample_bytes * first, piece.feature(input.feature).first(bytes));
    }
  }
}

void GpuDataSet::copy_in(std::byte* device, std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += piece_bytes_) {
    const std::size_t now = std::min(piece_bytes_, bytes.size() - at);
    gpu_.fill(pinned_.get(), bytes.data() + at, now);
    gpu_.copy_in(stream_, device + at, pinned_.get(), now);
    gpu_.record(copied_, stream_);
    gpu_.wait(copied_);
  }
}

void GpuDataSet::fill(device::Gpu::Stream stream, std::span<const std::byte* const> parts,
                      std::span<std::byte* const> inputs) const {
  GpuStream* const kernel_stream = gpu_.kernel_stream(stream);
  const auto* const ids = reinterpret_cast<const std::int64_t*>(parts[0]);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    if (input.functor.channels == 0) {
      kernels_->launch(
          kernel_stream, input.elements,
          GatherBytesFunctor{input.samples.get(), ids, inputs[i], static_cast<std::int64_t>(input.sample_bytes)});
      continue;
    }
    GatherImagesFunctor functor = input.functor;
    functor.images = input.samples.as<std::uint8_t>();
    functor.ids = ids;
    if (functor.steps > 0) functor.moves = reinterpret_cast<const PixelMove*>(parts[input.moves]);
    functor.out = reinterpret_cast<float*>(inputs[i]);
    kernels_->launch(kernel_stream, input.elements, functor);
  }
}

}  // namespace lockstep::input
