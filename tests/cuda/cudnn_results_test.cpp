// What cuDNN's plans compute, on a real GPU: convolutions of small integers, whose sums are exact in any order and
// whatever the factors are converted to, by the plan that the module would choose for each. Skipped without a GPU.
#include <cuda_runtime.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "core/low_precision.hpp"
#include "device/cuda/cudnn_convolution.hpp"
#include "device/cuda/nvrtc.hpp"
#include "ops/conv/conv_layout.hpp"

namespace lockstep {

namespace {

using device::CudnnConvolution;
using Direction = CudnnConvolution::Direction;
using Numbers = std::vector<float>;

struct Sizes {
  std::int64_t channels, filters, kernel;
};

struct Question {
  Direction direction;
  DType factors, result;
  bool tf32 = false;
};
constexpr Question kQuestions[] = {
    {Direction::output, DType::bf16, DType::bf16},
    {Direction::output, DType::bf16, DType::f32},
    {Direction::image_gradient, DType::bf16, DType::bf16},
    {Direction::image_gradient, DType::bf16, DType::f32},
    {Direction::weight_gradient, DType::bf16, DType::f32},
    {Direction::weight_gradient, DType::f16, DType::f32},
    {Direction::weight_gradient, DType::f32, DType::f32, true},
    {Direction::weight_gradient, DType::f32, DType::f32, false},
};

/// On the GPU.
class Block {
 public:
  explicit Block(std::size_t bytes) { EXPECT_EQ(cudaMalloc(&data_, bytes + 1), cudaSuccess); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { cudaFree(data_); }
  [[nodiscard]] void* get() const { return data_; }

 private:
  void* data_ = nullptr;
};

class CudnnResults : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no GPU";
    device::open_nvrtc_builtins();
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    gpu_.emplace(stream_, device::GpuPlace{"this host", 0, "this GPU"}, plans_);
  }

  static Numbers integers(std::int64_t count, std::uint64_t seed) {
    Numbers numbers(static_cast<std::size_t>(count));
    for (float& value : numbers) value = static_cast<float>((seed = seed * 6364136223846793005U + 1) >> 40U & 3U) - 1;
    return numbers;
  }

  static std::vector<std::byte> as(DType type, const Numbers& numbers) {
    std::vector<std::byte> bytes(numbers.size() * size_of(type));
    if (type == DType::f32) {
      std::memcpy(bytes.data(), numbers.data(), bytes.size());
    } else {
      downcast(type, numbers.data(), reinterpret_cast<std::uint16_t*>(bytes.data()), std::ssize(numbers));
    }
    return bytes;
  }

  /// The result of the plan, as its bytes.
  std::vector<std::byte> run(const CudnnConvolution& plan, const std::vector<std::byte>& first,
                             const std::vector<std::byte>& second, std::size_t result_bytes) {
    const Block a(first.size()), b(second.size()), d(result_bytes), workspace(plan.workspace_bytes());
    EXPECT_EQ(cudaMemcpy(a.get(), first.data(), first.size(), cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(b.get(), second.data(), second.size(), cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cudaMemset(d.get(), 0x7f, result_bytes), cudaSuccess);
    EXPECT_EQ(cudaMemset(workspace.get(), 0x7f, plan.workspace_bytes()), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    plan.run(*gpu_, {a.get(), b.get(), nullptr, d.get()}, workspace.get());
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    std::vector<std::byte> result(result_bytes);
    EXPECT_EQ(cudaMemcpy(result.data(), d.get(), result_bytes, cudaMemcpyDeviceToHost), cudaSuccess);
    return result;
  }

  /// In every direction and type.
  void expect_exact(const Sizes& sizes);

  cudaStream_t stream_ = nullptr;
  device::CudnnPlans plans_;
  std::optional<GpuStream> gpu_;
};

constexpr std::int64_t kBatch = 2, kHeight = 6, kWidth = 7;

/// Channels last; "same" padding.
Numbers convolution(const Sizes& s, Direction direction, const Numbers& first, const Numbers& second) {
  const std::int64_t c = s.channels, f = s.filters, k = s.kernel, before = (k - 1) / 2;
  const std::int64_t image = kBatch * kHeight * kWidth * c, output = kBatch * kHeight * kWidth * f,
                     weight = f * k * k * c;
  Numbers result(static_cast<std::size_t>(direction == Direction::output           ? output
                                          : direction == Direction::image_gradient ? image
                                                                                   : weight));
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t pixel = 0; pixel < kBatch * kHeight * kWidth; ++pixel) {
    const std::int64_t column = pixel % kWidth, row = pixel / kWidth % kHeight, sample = pixel / kWidth / kHeight;
    for (std::int64_t tap = 0; tap < k * k; ++tap) {
      const std::int64_t y = row + tap / k - before, x = column + tap % k - before;
      if (y < 0 || y >= kHeight || x < 0 || x >= kWidth) continue;
      const std::int64_t from = (sample * kHeight + y) * kWidth + x;
      for (std::int64_t filter = 0; filter < f; ++filter) {
        for (std::int64_t channel = 0; channel < c; ++channel) {
          const std::size_t of_image = at(from * c + channel), of_output = at(pixel * f + filter),
                            of_weight = at((filter * k * k + tap) * c + channel);
          if (direction == Direction::output) result[of_output] += first[of_image] * second[of_weight];
          if (direction == Direction::image_gradient) result[of_image] += first[of_output] * second[of_weight];
          if (direction == Direction::weight_gradient) result[of_weight] += first[of_output] * second[of_image];
        }
      }
    }
  }
  return result;
}

}  // namespace

void CudnnResults::expect_exact(const Sizes& s) {
  const std::int64_t before = (s.kernel - 1) / 2, after = s.kernel - 1 - before;
  const device::ConvolutionLayout layout = {device::channels_last(kBatch, s.channels, kHeight, kWidth),
                                            device::channels_last(s.filters, s.channels, s.kernel, s.kernel),
                                            device::channels_last(kBatch, s.filters, kHeight, kWidth),
                                            {before, before},
                                            {after, after},
                                            {1, 1},
                                            {1, 1}};
  const std::int64_t pixels = kBatch * kHeight * kWidth;
  const Numbers image = integers(pixels * s.channels, 1), output = integers(pixels * s.filters, 2),
                weight = integers(s.filters * s.channels * s.kernel * s.kernel, 3);
  for (const Question& question : kQuestions) {
    const auto chosen = CudnnConvolution::make(
        gpu_->cudnn_target(), gpu_->place(),
        {question.direction, false, {question.factors, question.result, question.tf32}}, layout, {"first", ""});
    if (!chosen) continue;
    const Numbers& first = question.direction == Direction::output ? image : output;
    const Numbers& second = question.direction == Direction::weight_gradient ? image : weight;
    const auto expected = as(question.result, convolution(s, question.direction, first, second));
    const auto of_first = as(question.factors, first), of_second = as(question.factors, second);
    const std::string what =
        fmt::format("direction {}, {} to {}{}, {} channels, {} filters, {} x {}", static_cast<int>(question.direction),
                    name_of(question.factors), name_of(question.result), question.tf32 ? " in tf32" : "", s.channels,
                    s.filters, s.kernel, s.kernel);
    EXPECT_TRUE(run(*chosen, of_first, of_second, expected.size()) == expected) << what << ": " << chosen->name();
  }
}

TEST_F(CudnnResults, AreExactForSmallIntegers) {
  for (const std::int64_t kernel : {1, 3}) {
    for (const std::int64_t channels : {4, 8, 12, 16, 64}) {
      for (const std::int64_t filters : {3, 8, 20, 24, 64}) expect_exact({channels, filters, kernel});
    }
  }
}

}  // namespace lockstep
