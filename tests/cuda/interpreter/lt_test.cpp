// The stand-in for cuBLASLt: what it computes, what it refuses, and what it says of calls that are wrong.
#include <cublasLt.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "cuda/interpreter/library_elements.hpp"
#include "cuda/interpreter/planted.hpp"

namespace lockstep::ptx {

namespace {

// d[m, n] = a[m, k] b[k, n]; a is given as its transpose, and b's columns have a gap of two elements.
constexpr std::int64_t kM = 8, kN = 5, kK = 37, kGap = 2;
constexpr std::int64_t kWorkspace = kM * kN * 4;

template <class T>
std::size_t as_size(T value) {
  return static_cast<std::size_t>(value);
}

Element element_of(cudaDataType type) {
  return type == CUDA_R_32F ? Element::fp32 : type == CUDA_R_16F ? Element::fp16 : Element::bf16;
}

/// A product as the module asks for it.
struct Asked {
  cudaDataType factors = CUDA_R_32F, result = CUDA_R_32F, vector = CUDA_R_32F;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  std::int64_t aux_step = kM;
  std::uint64_t max_workspace = 1 << 20;
};

class LtChecks : public Planted {
 protected:
  void SetUp() override {
    Planted::SetUp();
    ASSERT_EQ(cublasLtCreate(&handle_), CUBLAS_STATUS_SUCCESS);
  }
  void TearDown() override {
    forget();
    EXPECT_EQ(cublasLtDestroy(handle_), CUBLAS_STATUS_SUCCESS);
    Planted::TearDown();
  }

  void forget() {
    for (cublasLtMatrixLayout_t* const one : {&a_, &b_, &d_}) {
      if (*one == nullptr) continue;
      EXPECT_EQ(cublasLtMatrixLayoutDestroy(std::exchange(*one, nullptr)), CUBLAS_STATUS_SUCCESS);
    }
    if (desc_ == nullptr) return;
    EXPECT_EQ(cublasLtMatmulDescDestroy(std::exchange(desc_, nullptr)), CUBLAS_STATUS_SUCCESS);
  }

  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    EXPECT_EQ(cublasLtMatmulDescSetAttribute(desc_, attribute, &value, sizeof value), CUBLAS_STATUS_SUCCESS);
  }

  /// What the heuristic says; the algorithms are in proposed_.
  cublasStatus_t ask(const Asked& asked) {
    forget();
    EXPECT_EQ(cublasLtMatmulDescCreate(&desc_, asked.compute, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
    set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, asked.epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, asked.vector);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, std::uintptr_t{16});
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, asked.aux_step);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, std::uintptr_t{16});
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&a_, asked.factors, kK, kM, kK), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&b_, asked.factors, kK, kN, kK + kGap), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&d_, asked.result, kM, kN, kM), CUBLAS_STATUS_SUCCESS);
    cublasLtMatmulPreference_t preference = nullptr;
    EXPECT_EQ(cublasLtMatmulPreferenceCreate(&preference), CUBLAS_STATUS_SUCCESS);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      EXPECT_EQ(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
                CUBLAS_STATUS_SUCCESS);
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, asked.max_workspace);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, std::uint32_t{16});
    int count = 0;
    const auto status = cublasLtMatmulAlgoGetHeuristic(handle_, desc_, a_, b_, d_, d_, preference,
                                                       static_cast<int>(proposed_.size()), proposed_.data(), &count);
    EXPECT_EQ(cublasLtMatmulPreferenceDestroy(preference), CUBLAS_STATUS_SUCCESS);
    count_ = as_size(count);
    return status;
  }

  /// Values of a type on the GPU; the host keeps them as they were rounded.
  struct Numbers {
    Numbers(cudaDataType type, std::size_t count)
        : element(element_of(type)), values(count), block(std::make_unique<Block>(count * bytes_of(element))) {}
    Element element;
    std::vector<float> values;
    std::unique_ptr<Block> block;
    [[nodiscard]] void* at() const { return block->get(); }
  };
  void upload(Numbers& numbers) {
    const std::size_t bytes = numbers.values.size() * bytes_of(numbers.element);
    const Block pinned(bytes, true);
    from_floats(numbers.element, numbers.values, static_cast<u8*>(pinned.get()));
    numbers.values = to_floats(numbers.element, static_cast<u8*>(pinned.get()), numbers.values.size());
    EXPECT_EQ(cudaMemcpyAsync(numbers.at(), pinned.get(), bytes, cudaMemcpyHostToDevice, stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  }
  void fetch(Numbers& numbers) {
    const std::size_t bytes = numbers.values.size() * bytes_of(numbers.element);
    const Block pinned(bytes, true);
    EXPECT_EQ(cudaMemcpyAsync(pinned.get(), numbers.at(), bytes, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    numbers.values = to_floats(numbers.element, static_cast<u8*>(pinned.get()), numbers.values.size());
  }
  Numbers drawn(cudaDataType type, std::int64_t count) {
    Numbers numbers(type, as_size(count));
    for (float& value : numbers.values) value = static_cast<float>(draw_.below(2001)) / 1000 - 1;
    upload(numbers);
    return numbers;
  }

  cublasStatus_t multiply(std::size_t algorithm, const void* a, const void* b, void* d, void* workspace,
                          std::size_t workspace_bytes) {
    const float one = 1, zero = 0;
    return cublasLtMatmul(handle_, desc_, &one, a, a_, b, b_, &zero, d, d_, d, d_, &proposed_.at(algorithm).algo,
                          workspace, workspace_bytes, stream_);
  }

  Draw draw_{7};
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
  std::array<cublasLtMatmulHeuristicResult_t, 4> proposed_{};
  std::size_t count_ = 0;
};

double gelu_of(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

}  // namespace

// NOLINTNEXTLINE(readability-function-cognitive-complexity): one loop over all forms, with what each must give
TEST_F(LtChecks, EveryFormIsComputed) {
  struct Types {
    cudaDataType factors{}, result{};
    double tolerance = 0;
    cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  };
  constexpr std::array kTypes = {
      Types{CUDA_R_32F, CUDA_R_32F, 1e-5},   Types{CUDA_R_32F, CUDA_R_32F, 4e-3, CUBLAS_COMPUTE_32F_FAST_TF32},
      Types{CUDA_R_16BF, CUDA_R_16BF, 2e-2}, Types{CUDA_R_16BF, CUDA_R_32F, 1e-5},
      Types{CUDA_R_16F, CUDA_R_16F, 3e-3},   Types{CUDA_R_16F, CUDA_R_32F, 1e-5}};
  for (const Types& types : kTypes) {
    for (const auto epilogue : {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_GELU_AUX,
                                CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_BGRADB}) {
      ASSERT_EQ(ask({types.factors, types.result, types.result, epilogue, types.compute}), CUBLAS_STATUS_SUCCESS);
      ASSERT_EQ(count_, 2);
      const bool takes_gelu = epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
      const bool biased = epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
      const Numbers a = drawn(types.factors, kM * kK), b = drawn(types.factors, (kK + kGap) * kN);
      Numbers vector = drawn(types.result, kM), aux = drawn(types.result, kM * kN), d(types.result, as_size(kM * kN));
      const std::vector<float> bias = vector.values, given = aux.values;
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector.at());
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux.at());
      const Block workspace(as_size(kWorkspace));
      std::vector<std::vector<float>> results;
      for (std::size_t algorithm = 0; algorithm < count_; ++algorithm) {
        ASSERT_EQ(multiply(algorithm, a.at(), b.at(), d.at(), workspace.get(), proposed_[algorithm].workspaceSize),
                  CUBLAS_STATUS_SUCCESS);
        fetch(d);
        fetch(aux);
        fetch(vector);
        results.push_back(d.values);
        for (std::int64_t i = 0; i < kM * kN; ++i) {
          const std::int64_t row = i % kM, column = i / kM;
          double sum = biased ? bias[as_size(row)] : 0;
          for (std::int64_t k = 0; k < kK; ++k) {
            sum += double{a.values[as_size(row * kK + k)]} * double{b.values[as_size(column * (kK + kGap) + k)]};
          }
          const double x = given[as_size(i)], slope = (gelu_of(x + 1e-5) - gelu_of(x - 1e-5)) / 2e-5;
          const double expected = takes_gelu ? gelu_of(sum) : epilogue == CUBLASLT_EPILOGUE_DGELU ? sum * slope : sum;
          EXPECT_NEAR(d.values[as_size(i)], expected, types.tolerance * (1 + std::abs(expected)));
          if (!takes_gelu) continue;
          EXPECT_NEAR(aux.values[as_size(i)], sum, types.tolerance * (1 + std::abs(sum)));
        }
        for (std::int64_t column = 0; epilogue == CUBLASLT_EPILOGUE_BGRADB && column < kN; ++column) {
          const auto* const of = b.values.data() + column * (kK + kGap);
          EXPECT_NEAR(vector.values[as_size(column)], std::accumulate(of, of + kK, 0.0), types.tolerance * 10);
        }
      }
      EXPECT_TRUE(types.result != CUDA_R_32F || results[0] != results[1]);  // they add in two orders
      EXPECT_EQ(found(), Texts());
    }
  }
}

TEST_F(LtChecks, RefusesWhatTheDocumentationSays) {
  using Status = cublasStatus_t;
  const auto bias = CUBLASLT_EPILOGUE_BIAS, gelu = CUBLASLT_EPILOGUE_GELU_AUX;
  const std::vector<std::pair<Asked, Status>> asked = {
      {{CUDA_R_32F, CUDA_R_16F}, CUBLAS_STATUS_NOT_SUPPORTED},
      {{CUDA_R_16F, CUDA_R_16BF}, CUBLAS_STATUS_NOT_SUPPORTED},
      {{CUDA_R_64F, CUDA_R_64F}, CUBLAS_STATUS_NOT_SUPPORTED},
      {{CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, bias}, CUBLAS_STATUS_INVALID_VALUE},
      {{CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, bias}, CUBLAS_STATUS_NOT_SUPPORTED},
      {{CUDA_R_16F, CUDA_R_32F, CUDA_R_16F, CUBLASLT_EPILOGUE_BGRADB}, CUBLAS_STATUS_NOT_SUPPORTED},
      {{CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUBLASLT_EPILOGUE_DEFAULT, CUBLAS_COMPUTE_32F_FAST_TF32},
       CUBLAS_STATUS_NOT_SUPPORTED},
      {{.epilogue = gelu, .aux_step = kM + 1}, CUBLAS_STATUS_INVALID_VALUE},
      {{.epilogue = gelu, .aux_step = kM - 8}, CUBLAS_STATUS_INVALID_VALUE}};
  for (std::size_t i = 0; i < asked.size(); ++i) EXPECT_EQ(ask(asked[i].first), asked[i].second) << i;
  EXPECT_EQ(ask({.max_workspace = kWorkspace - 1}), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(count_, 1);
  EXPECT_EQ(proposed_[0].workspaceSize, 0);
  setenv("INTERPRETED_LIBRARIES_LACK", "sums,gelu", 1);
  EXPECT_EQ(ask({.epilogue = gelu}), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(ask({.epilogue = bias}), CUBLAS_STATUS_SUCCESS);
  unsetenv("INTERPRETED_LIBRARIES_LACK");
  EXPECT_EQ(found(), Texts());
}

TEST_F(LtChecks, WrongCallsAreSaid) {
  ASSERT_EQ(ask({}), CUBLAS_STATUS_SUCCESS);
  const Numbers a = drawn(CUDA_R_32F, kM * kK), b = drawn(CUDA_R_32F, (kK + kGap) * kN);
  const Numbers d(CUDA_R_32F, as_size(kM * kN));
  const Block workspace(as_size(kWorkspace) + 256);
  const auto call = [&](const void* to_a, void* to_workspace, std::size_t bytes) {
    return multiply(0, to_a, b.at(), d.at(), to_workspace, bytes);
  };
  EXPECT_EQ(call(a.at(), workspace.get(), kWorkspace - 4), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(call(a.at(), workspace.at(16), kWorkspace), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(call(a.block->at(4), workspace.get(), kWorkspace), CUBLAS_STATUS_INVALID_VALUE);
  const auto of_another = proposed_;
  ASSERT_EQ(ask({.epilogue = CUBLASLT_EPILOGUE_BIAS}), CUBLAS_STATUS_SUCCESS);
  proposed_ = of_another;
  EXPECT_EQ(call(a.at(), workspace.get(), kWorkspace), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(found(),
            (Texts{"cublasLtMatmul: a workspace of 156 bytes, of which 160 are needed",
                   "cublasLtMatmul: a workspace that isn't aligned", "cublasLtMatmul: an algorithm of another problem",
                   "cublasLtMatmul: memory that is aligned less than was said"}));
}

TEST_F(LtChecks, WhatItReadsAndWritesIsChecked) {
  ASSERT_EQ(ask({}), CUBLAS_STATUS_SUCCESS);
  const Numbers a = drawn(CUDA_R_32F, kM * kK), b = drawn(CUDA_R_32F, (kK + kGap) * kN);
  const Numbers unwritten(CUDA_R_32F, as_size(kM * kK)), d(CUDA_R_32F, as_size(kM * kN));
  const Block workspace(as_size(kWorkspace));
  const auto said = [&](std::size_t algorithm, const void* to_a, void* to_d, void* to_workspace, std::size_t bytes) {
    machine().problems.clear();
    EXPECT_EQ(multiply(algorithm, to_a, b.at(), to_d, to_workspace, bytes), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    const Texts texts = found();
    return texts.size() == 1 ? texts[0].substr(0, texts[0].find(';')) : fmt::format("{} problems", texts.size());
  };
  const std::string races = "a product of cuBLASLt races: writes what another thread of the launch reads";
  EXPECT_EQ(said(0, unwritten.at(), d.at(), workspace.get(), kWorkspace),
            "a product of cuBLASLt reads memory that nobody wrote");
  EXPECT_EQ(said(1, a.at(), a.at(), nullptr, 0), races);
  EXPECT_EQ(said(0, a.at(), d.at(), d.at(), kWorkspace), races);
  const Block small(16);
  EXPECT_EQ(multiply(1, a.at(), b.at(), small.get(), nullptr, 0), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorIllegalAddress);
  machine().problems.clear();  // a GPU that is broken frees nothing
}

TEST_F(LtChecks, IsRecorded) {
  ASSERT_EQ(ask({}), CUBLAS_STATUS_SUCCESS);
  Numbers a = drawn(CUDA_R_32F, kM * kK);
  const Numbers b = drawn(CUDA_R_32F, (kK + kGap) * kN);
  Numbers d(CUDA_R_32F, as_size(kM * kN));
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_EQ(multiply(1, a.at(), b.at(), d.at(), nullptr, 0), CUBLAS_STATUS_SUCCESS);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  cudaGraphExec_t runnable = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&runnable, graph, 0), cudaSuccess);
  for (const float factor : {1.0F, 0.0F}) {
    for (float& value : a.values) value *= factor;
    upload(a);
    ASSERT_EQ(cudaGraphLaunch(runnable, stream_), cudaSuccess);
    fetch(d);
    EXPECT_EQ(std::ranges::all_of(d.values, [](float value) { return value == 0; }), factor == 0);
  }
  EXPECT_EQ(cudaGraphExecDestroy(runnable), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(found(), Texts());
}

}  // namespace lockstep::ptx
