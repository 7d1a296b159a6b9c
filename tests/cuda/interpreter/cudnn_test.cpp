// The stand-in for cuDNN: which engines it proposes, and what it says of calls that are wrong. What it computes is
// compared with the CPU by the ops' own cases (libraries_test.py).
#include <cudnn.h>

#include <numeric>
#include <utility>
#include <vector>

#include "cuda/interpreter/cudnn_planted.hpp"

namespace lockstep::ptx {

namespace {

using Sizes = std::vector<std::int64_t>;

// One image of 4 x 4 with two channels, two filters of 3 x 3, no padding.
const Sizes kImage = {1, 2, 4, 4}, kWeight = {2, 2, 3, 3}, kOutput = {1, 2, 2, 2};

Sizes channels_last(const Sizes& sizes) {
  return {sizes[1] * sizes[2] * sizes[3], 1, sizes[3] * sizes[1], sizes[1]};
}
Sizes channels_first(const Sizes& sizes) {
  return {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
}

class CudnnChecks : public CudnnPlanted {
 protected:
  void TearDown() override {
    for (const auto descriptor : made_) EXPECT_EQ(cudnnBackendDestroyDescriptor(descriptor), CUDNN_STATUS_SUCCESS);
    CudnnPlanted::TearDown();
  }

  cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t descriptor = nullptr;
    EXPECT_EQ(cudnnBackendCreateDescriptor(type, &descriptor), CUDNN_STATUS_SUCCESS);
    made_.push_back(descriptor);
    return descriptor;
  }
  template <class Value>
  static void set(cudnnBackendDescriptor_t to, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  const std::vector<Value>& values) {
    EXPECT_EQ(cudnnBackendSetAttribute(to, name, type, std::ssize(values), values.data()), CUDNN_STATUS_SUCCESS);
  }
  static void set(cudnnBackendDescriptor_t to, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value) {
    set(to, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::vector{value});
  }
  static cudnnBackendDescriptor_t finalized(cudnnBackendDescriptor_t descriptor) {
    EXPECT_EQ(cudnnBackendFinalize(descriptor), CUDNN_STATUS_SUCCESS);
    return descriptor;
  }

  cudnnBackendDescriptor_t tensor(std::int64_t uid, const Sizes& sizes, const Sizes& strides,
                                  cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    const auto made = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, std::vector{type});
    set(made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, sizes);
    set(made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides);
    set(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, Sizes{uid});
    set(made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, Sizes{16});
    return finalized(made);
  }

  /// A graph of the output of a convolution, from the descriptors of image, weight and output.
  cudnnBackendDescriptor_t graph(cudnnBackendDescriptor_t image, cudnnBackendDescriptor_t weight,
                                 cudnnBackendDescriptor_t output) {
    const auto window = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set(window, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, std::vector{CUDNN_DATA_FLOAT});
    set(window, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, std::vector{CUDNN_CROSS_CORRELATION});
    set(window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, Sizes{0, 0});
    set(window, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, Sizes{0, 0});
    set(window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, Sizes{1, 1});
    set(window, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, Sizes{1, 1});
    const auto operation = make(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, image);
    set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, weight);
    set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, output);
    set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, finalized(window));
    set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, std::vector{1.0F});
    set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, std::vector{0.0F});
    const auto made = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(made, CUDNN_ATTR_OPERATIONGRAPH_OPS, finalized(operation));
    return finalized(made);
  }
  cudnnBackendDescriptor_t plain_graph() {
    return graph(tensor(1, kImage, channels_last(kImage)), tensor(2, kWeight, channels_last(kWeight)),
                 tensor(3, kOutput, channels_last(kOutput)));
  }

  /// What is proposed for a graph.
  std::vector<cudnnBackendDescriptor_t> proposals(cudnnBackendDescriptor_t of) {
    const auto heuristics = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, of);
    set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, std::vector{CUDNN_HEUR_MODE_A});
    std::int64_t count = 0;
    finalized(heuristics);
    EXPECT_EQ(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                                       &count, nullptr),
              CUDNN_STATUS_SUCCESS);
    std::vector<cudnnBackendDescriptor_t> all;
    for (std::int64_t i = 0; i < count; ++i) all.push_back(make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    EXPECT_EQ(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
                                       &count, all.data()),
              CUDNN_STATUS_SUCCESS);
    return all;
  }
  cudnnBackendDescriptor_t plan(cudnnBackendDescriptor_t configuration) {
    const auto made = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set(made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    return finalized(made);
  }
  static std::int64_t workspace_of(cudnnBackendDescriptor_t plan) {
    std::int64_t bytes = -1, count = 0;
    EXPECT_EQ(
        cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &bytes),
        CUDNN_STATUS_SUCCESS);
    return bytes;
  }
  cudnnStatus_t execute(cudnnBackendDescriptor_t plan, const std::vector<std::pair<std::int64_t, void*>>& tensors,
                        void* workspace) {
    const auto pack = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    Sizes uids;
    std::vector<void*> pointers;
    for (const auto& [uid, pointer] : tensors) {
      uids.push_back(uid);
      pointers.push_back(pointer);
    }
    set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, uids);
    set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers);
    set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, std::vector{workspace});
    return cudnnBackendExecute(handle_, plan, finalized(pack));
  }

  std::vector<cudnnBackendDescriptor_t> made_;
};

constexpr std::size_t kPlain = 4, kInParts = 3;  // among the proposals

}  // namespace

TEST_F(CudnnChecks, ProposesAnEngineOfEachKind) {
  std::vector<std::int64_t> workspaces;
  for (const auto configuration : proposals(plain_graph())) workspaces.push_back(workspace_of(plan(configuration)));
  EXPECT_EQ(workspaces, (Sizes{0, 0, std::int64_t{1} << 40, 2 * 2 * 2 * 4, 0}));
}

TEST_F(CudnnChecks, HasNoEngineForWhatCudnnHasNoneFor) {
  const auto image = tensor(1, kImage, channels_last(kImage)), output = tensor(3, kOutput, channels_last(kOutput));
  EXPECT_EQ(proposals(graph(image, tensor(2, kWeight, channels_first(kWeight)), output)).size(), 0);
  EXPECT_EQ(proposals(graph(image, tensor(2, kWeight, channels_last(kWeight), CUDNN_DATA_HALF), output)).size(), 0);
  const auto half = [&](std::int64_t uid, const Sizes& sizes) {
    return tensor(uid, sizes, channels_last(sizes), CUDNN_DATA_HALF);
  };
  EXPECT_EQ(proposals(graph(half(1, kImage), half(2, kWeight), output)).size(), 0);
  EXPECT_EQ(proposals(graph(half(1, kImage), half(2, kWeight), half(3, kOutput))).size(), 5);
  cudnnBackendDescriptor_t none = nullptr;
  EXPECT_EQ(cudnnBackendCreateDescriptor(CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR, &none), CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(found(), Texts());
}

TEST_F(CudnnChecks, WrongCallsAreSaid) {
  const auto configurations = proposals(plain_graph());
  const Block image(4 * 32), weight(4 * 36), output(4 * 8);
  const auto plain = plan(configurations.at(kPlain)), in_parts = plan(configurations.at(kInParts));
  EXPECT_EQ(execute(plain, {{1, image.get()}, {2, weight.get()}}, nullptr), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(execute(plain, {{1, image.at(4)}, {2, weight.get()}, {3, output.get()}}, nullptr), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(execute(in_parts, {{1, image.get()}, {2, weight.get()}, {3, output.get()}}, nullptr),
            CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(found(), (Texts{"cuDNN: no workspace", "cuDNN: tensor 1 is aligned less than was said",
                            "cuDNN: tensor 3 is nowhere"}));
  const auto open = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  std::int64_t value = 0, count = 0;
  EXPECT_EQ(cudnnBackendGetAttribute(open, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &count, &value),
            CUDNN_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(cudnnBackendSetAttribute(plain, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle_),
            CUDNN_STATUS_NOT_INITIALIZED);
}

TEST_F(CudnnChecks, WhatItReadsAndWritesIsChecked) {
  const auto configurations = proposals(plain_graph());
  const Block image(4 * 32), weight(4 * 36), output(4 * 8);
  clear(image.get(), 4 * 32);
  const auto run = [&](void* to_output, void* workspace) {
    machine().problems.clear();
    EXPECT_EQ(
        execute(plan(configurations.at(kInParts)), {{1, image.get()}, {2, weight.get()}, {3, to_output}}, workspace),
        CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    const Texts texts = found();
    return texts.size() == 1 ? texts[0].substr(0, texts[0].find(';')) : std::to_string(texts.size()) + " problems";
  };
  const Block workspace(4 * 8);
  EXPECT_EQ(run(output.get(), workspace.get()), "a kernel of cuDNN reads memory that nobody wrote");
  clear(weight.get(), 4 * 36);
  EXPECT_EQ(run(output.get(), workspace.get()), "0 problems");
  EXPECT_EQ(run(image.get(), workspace.get()),
            "a kernel of cuDNN races: writes what another thread of the launch reads");
  EXPECT_EQ(run(output.get(), output.get()), "a kernel of cuDNN races: writes what another thread of the launch reads");
  EXPECT_EQ(
      execute(plan(configurations.at(kPlain)), {{1, image.get()}, {2, weight.get()}, {3, workspace.at(16)}}, nullptr),
      CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorIllegalAddress);
  machine().problems.clear();  // a GPU that is broken frees nothing
}

}  // namespace lockstep::ptx
