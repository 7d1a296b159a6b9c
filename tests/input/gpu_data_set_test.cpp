// A data set on a GPU: the results of its kernels, over their whole grids, have the bits of the host's loader, and a
// fake detects every unordered access.
#include "data/input/gpu_data_set.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "data/loader.hpp"
#include "device/fake_gpu.hpp"
#include "device/gpu/input_stage.hpp"
#include "graph/model_graph.hpp"
#include "input/checked_gather_kernels.hpp"
#include "lockstep/error.hpp"
#include "lockstep/graph_builder.hpp"
#include "ops/registry.hpp"

namespace lockstep::input {

namespace {

using Int = std::int64_t;
using Steps = std::vector<AugmentOptions>;

constexpr int kMicroBatches = 3;
constexpr Int kMicroBatchSamples = 5, kSamples = 37;  // the last micro-batch of an evaluation is padded

/// Every kind of feature, with sizes that are not multiples of anything.
class MixedSet final : public DataSet {
 public:
  MixedSet(Shape left, Shape right) {
    info_.features = {{"left", Feature::Kind::image, {DType::u8, std::move(left)}},
                      {"label", Feature::Kind::label, {DType::i32, {}}},
                      {"vector", Feature::Kind::tensor, {DType::f32, {7}}},
                      {"odd", Feature::Kind::tensor, {DType::u8, {3}}},
                      {"tokens", Feature::Kind::tokens, {DType::i32, {9}}},
                      {"unused", Feature::Kind::tensor, {DType::f64, {11}}},
                      {"right", Feature::Kind::image, {DType::u8, std::move(right)}}};
  }
  [[nodiscard]] const DataSetInfo& info() const override { return info_; }
  [[nodiscard]] Int size() const override { return kSamples; }
  void read(Int id, Sample& out) const override {
    if (id == bad) throw Error(ExitCode::data, "sample 30 is bad");
    RandomStream random(11, static_cast<std::uint64_t>(id));
    out.clear();
    for (const Feature& feature : info_.features) {
      Tensor& tensor = out.emplace_back(NamedTensor{feature.name, Tensor(feature.spec)}).tensor;
      for (std::size_t i = 0; i < feature.spec.bytes(); ++i) {
        tensor.bytes()[i] = static_cast<std::byte>(random.below(256));
      }
    }
  }
  Int bad = -1;

 private:
  DataSetInfo info_;
};

Graph graph_of(const data::Pipeline& pipeline, const std::vector<std::string>& names) {
  OpRegistry ops;
  ops::add_built_in(ops);
  GraphBuilder b(ops, kMicroBatchSamples);
  for (const std::string& name : names) {
    for (const Feature& feature : pipeline.outputs()) {
      if (feature.name == name) (void)b.input(name, feature.spec);
    }
  }
  return std::move(b.graph());
}

data::LoaderOptions loader_options(bool training, bool drawn) {
  data::LoaderOptions options;
  options.micro_batches =
      training ? kMicroBatches : static_cast<int>((kSamples + kMicroBatchSamples - 1) / kMicroBatchSamples);
  options.batch = kMicroBatchSamples * options.micro_batches;
  options.seed = 4;
  options.last_step = 6;  // three epochs
  options.training = training;
  options.drawn = drawn;
  return options;
}

/// One micro-batch after the other, through reused memory, like a GPU's worker.
class Bench {
 public:
  Bench(const MixedSet& set, const Steps& steps, bool training) : set_(set), steps_(steps), training_(training) {
    graph_ = graph_of(pipeline(), {"right", "odd", "label", "tokens", "left", "vector"});
  }

  [[nodiscard]] data::Pipeline pipeline() const {
    return {
        set_.info().features, {.steps = steps_, .mean = {0.4}, .stddev = {0.3}, .seed = 2}, built_in_augmentations()};
  }

  void expect_same_bits(std::size_t piece_bytes = GpuDataSet::kPieceBytes) {
    exec::WorkerPool readers(2);
    const GpuDataSet resident(set_, pipeline(), graph_, fake_, std::make_shared<CheckedGatherKernels>(), readers,
                              piece_bytes);
    data::LoaderOptions of_host = loader_options(training_, false);
    of_host.inputs = input_names(graph_);
    data::Loader host(set_, pipeline(), of_host);
    data::Loader drawn(set_, pipeline(), loader_options(training_, true));
    MicroBatchInputs expected, parts;
    const data::LoaderOptions options = loader_options(training_, true);
    for (std::uint64_t step = 0; step < (training_ ? options.last_step : 1); ++step) {
      for (int micro_batch = 0; micro_batch < options.micro_batches; ++micro_batch) {
        host.get(step, micro_batch, expected);
        drawn.get(step, micro_batch, parts);
        EXPECT_EQ(parts.valid, expected.valid);
        compare(fill(resident, parts), expected);
        host.release(step, micro_batch);
        drawn.release(step, micro_batch);
      }
    }
    fake_.record(done_, compute_);
    fake_.wait(done_);
  }

 private:
  using Places = std::vector<std::byte*>;

  Places fill(const GpuDataSet& resident, const MicroBatchInputs& given) {
    std::vector<std::span<const std::byte>> parts;
    for (std::size_t i = 0; i < resident.parts().size(); ++i) {
      parts.emplace_back(static_cast<const std::byte*>(given.tensors.at(i)), resident.parts()[i]);
    }
    stage_.put(parts);
    const std::byte* at = stage_.take();
    std::vector<const std::byte*> places;
    for (const auto part : parts) {
      places.push_back(at);
      at += device::InputStage::up_to_part(part.size());
    }
    if (inputs_.empty()) {
      for (const ValueId id : graph_.inputs) inputs_.emplace_back(fake_, graph_.at(id).spec.bytes());
    }
    Places inputs;
    for (const auto& input : inputs_) inputs.push_back(input.get());
    resident.fill(compute_, places, inputs);
    stage_.release();
    return inputs;
  }

  void compare(const Places& inputs, const MicroBatchInputs& expected) const {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto& input = graph_.at(graph_.inputs[i]);
      EXPECT_EQ(std::memcmp(inputs[i], expected.tensors.at(i), input.spec.bytes()), 0) << input.name;
    }
  }

  device::FakeGpu fake_;
  device::Gpu::Stream compute_ = fake_.make_kernel_stream();
  device::Gpu::Event done_ = fake_.make_event();
  device::InputStage stage_{fake_, compute_, std::size_t{1} << 16, 1};
  const MixedSet& set_;
  Steps steps_;
  bool training_;
  Graph graph_;
  std::vector<device::GpuBlock> inputs_;
};

AugmentOptions step(const std::string& name, std::map<std::string, Attribute> attributes = {}) {
  return {name, Attributes(std::move(attributes)), {}};
}

}  // namespace

TEST(GpuDataSet, HasTheBitsOfTheHostsPipeline) {
  const auto cutout = step("cutout", {{"size", Int{3}}});
  const std::vector<Steps> all = {{},
                                  {step("flip")},
                                  {step("crop", {{"padding", Int{2}}})},
                                  {cutout},
                                  {step("center_crop", {{"size", std::vector<Int>{9, 4}}})},
                                  {step("resize", {{"size", std::vector<Int>{6, 8}}}), step("flip")},
                                  {step("flip"), step("crop"), cutout, step("center_crop", {{"size", Int{5}}})}};
  const MixedSet set({7, 9, 3}, {5, 4, 1});
  for (const Steps& steps : all) {
    for (const bool training : {true, false}) {
      SCOPED_TRACE(steps.empty() ? "nothing" : steps.front().name);
      Bench(set, steps, training).expect_same_bits();
    }
  }
}

TEST(GpuDataSet, IsUploadedInPiecesWhereItIsLargerThanOne) {
  const MixedSet set({7, 9, 3}, {5, 4, 1});
  for (const std::size_t piece : {1000, 50}) {  // of three samples; less than one
    Bench(set, {step("flip")}, true).expect_same_bits(piece);
  }
}

TEST(GpuDataSet, TakesTheMemoryThatItSays) {
  const MixedSet set({7, 9, 3}, {5, 4, 1});
  const data::Pipeline pipeline(set.info().features, {.steps = {}, .mean = {}, .stddev = {}, .seed = 0},
                                built_in_augmentations());
  EXPECT_EQ(GpuDataSet::bytes(set, pipeline, graph_of(pipeline, {"left", "label"})), kSamples * (7 * 9 * 3 + 4));
  EXPECT_EQ(GpuDataSet::bytes(set, pipeline, graph_of(pipeline, {"vector"})), kSamples * 7 * 4);
}

TEST(GpuDataSet, ASampleThatCannotBeReadEndsTheStart) {
  MixedSet set({7, 9, 3}, {5, 4, 1});
  set.bad = 30;
  device::FakeGpu fake;
  const data::Pipeline pipeline(set.info().features, {.steps = {}, .mean = {}, .stddev = {}, .seed = 0},
                                built_in_augmentations());
  exec::WorkerPool readers(2);
  try {
    const GpuDataSet resident(set, pipeline, graph_of(pipeline, {"left"}), fake,
                              std::make_shared<CheckedGatherKernels>(), readers);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    EXPECT_STREQ(error.what(), "sample 30 is bad");
  }
  EXPECT_EQ(fake.blocks_alive(), 0U);
}

}  // namespace lockstep::input
