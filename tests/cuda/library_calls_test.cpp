// How CudaGpu and LtProduct call CUDA, on scripted libraries: what they create is destroyed exactly once, on every
// path; failures name their place; and of cuBLASLt's proposals only those that keep our promise are accepted.
#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <utility>

#include "cuda/refusal.hpp"
#include "cuda/scripted_cuda.hpp"
#include "device/cuda/cuda_gpu.hpp"
#include "device/cuda/lt_product.hpp"
#include "device/layer_algorithms.hpp"
#include "lockstep/error.hpp"

namespace lockstep::device {

namespace {

using Calls = std::vector<std::string>;

const GpuPlace kPlace{"node7", 3, "GPU 1 (a card, 0000:3b:00.0)"};
constexpr const char* kWhere = "node7, rank 3, GPU 1 (a card, 0000:3b:00.0)";

class LibraryCalls : public testing::Test {
 protected:
  LibraryCalls() { begin_script(); }
  ~LibraryCalls() override {
    for (const auto& [kind, count] : scripted_cuda().alive) EXPECT_EQ(count, 0) << kind;
  }

  /// The calls since the last time.
  static Calls calls() { return std::exchange(scripted_cuda().calls, {}); }
};

}  // namespace

TEST_F(LibraryCalls, WhatIsMadeIsDestroyedOnce) {
  CudaGpu gpu(1, kPlace);
  (void)gpu.make_stream();
  (void)gpu.make_kernel_stream();
  (void)gpu.make_event();
  gpu.free(gpu.allocate(100));
  (void)gpu.allocate(100);
  gpu.free_pinned(gpu.allocate_pinned(100));
  const std::map<std::string, int> expected = {
      {"stream", 2}, {"handle", 2}, {"event", 1}, {"memory", 1}, {"pinned memory", 0}};
  EXPECT_EQ(scripted_cuda().alive, expected);
}

TEST_F(LibraryCalls, APartIsRecordedOnceAndLaunchedAgainAndAgain) {
  CudaGpu gpu(1, kPlace);
  const auto stream = gpu.make_kernel_stream();
  (void)calls();
  const auto graph = gpu.capture(stream, [] { scripted_cuda().calls.emplace_back("put"); });
  graph->launch();
  graph->launch();
  EXPECT_EQ(calls(), (Calls{"cudaStreamBeginCapture", "put", "cudaStreamEndCapture", "cudaGraphInstantiate",
                            "cudaGraphDestroy", "cudaGraphLaunch", "cudaGraphLaunch"}));
}

TEST_F(LibraryCalls, AnErrorWhileAPartIsRecordedEndsTheRecording) {
  CudaGpu gpu(1, kPlace);
  const auto stream = gpu.make_kernel_stream();
  (void)calls();
  EXPECT_THROW((void)gpu.capture(stream, [] { throw std::runtime_error("of a kernel"); }), std::runtime_error);
  EXPECT_EQ(calls(), (Calls{"cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphDestroy"}));
}

TEST_F(LibraryCalls, AGraphThatCannotBeMadeNamesTheOp) {
  CudaGpu gpu(1, kPlace);
  const auto stream = gpu.make_kernel_stream();
  gpu.enter(stream, 2, "conv 'stem' ... relu 'last'");
  scripted_cuda().answers["cudaGraphInstantiate"] = cudaErrorMemoryAllocation;
  EXPECT_EQ(refusal([&] { (void)gpu.capture(stream, [] {}); }),
            std::string(kWhere) +
                ", step 2, conv 'stem' ... relu 'last': cudaGraphInstantiate(&runnable, graph.get(), 0) "
                "failed with 2: some error; cuda_graphs: false launches kernels without recording them");
  EXPECT_EQ(scripted_cuda().last_error, 0);  // which the next launch's check would mistake for its own
}

TEST_F(LibraryCalls, AFaultNamesWhatMayHaveMadeIt) {
  CudaGpu gpu(1, kPlace);
  const auto one = gpu.make_kernel_stream(), other = gpu.make_kernel_stream();
  const auto event = gpu.make_event();
  scripted_cuda().answers["cudaEventSynchronize"] = cudaErrorIllegalAddress;
  const std::string failed =
      ": cudaEventSynchronize(at(event)) failed with 700: an illegal memory access was encountered";
  EXPECT_EQ(refusal([&] { gpu.wait(event); }), kWhere + failed);
  gpu.enter(one, 119, "relu 'a'");
  gpu.enter(other, 120, "conv 'b'");
  EXPECT_EQ(refusal([&] { gpu.wait(event); }), std::string(kWhere) + ", step 120, conv 'b'" + failed);
  gpu.enter(one, 120, "relu 'a'");
  EXPECT_EQ(refusal([&] { gpu.wait(event); }), std::string(kWhere) + ", step 120, relu 'a' or conv 'b'" + failed);
}

TEST_F(LibraryCalls, AStreamNamesNoOpOfAnother) {
  CudaGpu gpu(1, kPlace);
  gpu.enter(gpu.make_kernel_stream(), 119, "relu 'a'");
  const auto later = gpu.make_kernel_stream();
  EXPECT_EQ(gpu.kernel_stream(later)->place().text(), kWhere);
}

TEST_F(LibraryCalls, AnEventThatIsNotDoneLeavesNoErrorBehind) {
  CudaGpu gpu(1, kPlace);
  const auto event = gpu.make_event();
  scripted_cuda().answers["cudaEventQuery"] = cudaErrorNotReady;
  EXPECT_FALSE(gpu.done(event));
  EXPECT_EQ(scripted_cuda().last_error, 0);  // which the next launch's check would mistake for its own
  scripted_cuda().answers["cudaEventQuery"] = cudaErrorIllegalAddress;
  EXPECT_NE(refusal([&] { (void)gpu.done(event); }).find("cudaEventQuery"), std::string::npos);
  scripted_cuda().answers.clear();
  EXPECT_TRUE(gpu.done(event));
}

class ScriptedProducts : public LibraryCalls {
 protected:
  std::optional<LtProduct> product(const std::string& wanted = "") const {
    const std::array forms = {ProductForm{.epilogue = Epilogue::bias}, ProductForm{}};
    return LtProduct::make(*gpu.kernel_stream(stream), {{8, 16}, {16, 4}}, forms, {"linear 'head'", wanted});
  }
  mutable CudaGpu gpu{1, kPlace};
  Gpu::Stream stream = gpu.make_kernel_stream();
};

TEST_F(ScriptedProducts, TakesTheFirstAlgorithmThatAddsInOneOrder) {
  scripted_cuda().proposed = {{.id = 1, .split_k = 2},
                              {.id = 2, .reduction = CUBLASLT_REDUCTION_SCHEME_INPLACE},
                              {.id = 3, .workspace = LtProduct::kMaxWorkspace + 1},
                              {.id = 4, .taken = false},
                              {.id = 5},
                              {.id = 6}};
  auto made = product();
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->name().starts_with("cuBLASLt algorithm 5, ")) << made->name();
  alignas(16) std::array<float, 128> memory{};
  made->run(*gpu.kernel_stream(stream),
            {.a = memory.data(), .b = memory.data(), .d = memory.data(), .bias = memory.data()}, nullptr);
  EXPECT_EQ(scripted_cuda().multiplied_by, 5);
}

TEST_F(ScriptedProducts, AnotherRankTakesWhatItIsToldOrIsRefused) {
  scripted_cuda().proposed = {{.id = 5}, {.id = 6}};
  const std::string first = product()->name();
  std::swap(scripted_cuda().proposed[0], scripted_cuda().proposed[1]);
  EXPECT_NE(product()->name(), first);
  EXPECT_EQ(product(first)->name(), first);
  scripted_cuda().proposed.pop_back();
  EXPECT_THROW((void)product(first), Error);
}

TEST_F(ScriptedProducts, HasNoneWhereTheLibraryHasNone) {
  EXPECT_FALSE(product());  // it proposes nothing
  scripted_cuda().proposes = CUBLAS_STATUS_NOT_SUPPORTED;
  EXPECT_FALSE(product());
  EXPECT_FALSE(product(std::string(kOwnKernel)));
  scripted_cuda().proposes = CUBLAS_STATUS_INTERNAL_ERROR;
  EXPECT_NE(refusal([&] { (void)product(); }).find("failed with 14: some status"), std::string::npos);
}

}  // namespace lockstep::device
