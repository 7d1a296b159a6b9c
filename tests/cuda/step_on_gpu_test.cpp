// What a step on a GPU does besides its ops: sums, casts and updates have the bits that they have on the CPU. Skipped
// without a GPU.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>

#include "core/low_precision.hpp"
#include "cuda/this_gpu.hpp"
#include "device/gpu/gpu_memory.hpp"
#include "lockstep/random.hpp"
#include "optim/updater_bench.hpp"
#include "step/optim/newton_schulz_grid.hpp"
#include "step/optim/optimizers/muon.hpp"
#include "step/optim/update_kernels.hpp"

namespace lockstep::optim {

namespace {

class StepOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = this_.open(); !why.empty()) GTEST_SKIP() << why;
    stream_ = gpu().make_kernel_stream();
  }

  [[nodiscard]] device::Gpu& gpu() const { return *this_.gpu; }

  template <class T>
  device::GpuBlock put(const std::vector<T>& values) {
    const std::size_t bytes = values.size() * sizeof(T);
    const device::PinnedBlock pinned(gpu(), bytes);
    gpu().fill(pinned.get(), reinterpret_cast<const std::byte*>(values.data()), bytes);
    device::GpuBlock block(gpu(), bytes);
    gpu().copy_in(stream_, block.get(), pinned.get(), bytes);
    wait();
    return block;
  }

  template <class T>
  std::vector<T> fetch(const device::GpuBlock& block, std::size_t count) {
    return fetch<T>(block.get(), count);
  }
  template <class T>
  std::vector<T> fetch(const std::byte* from, std::size_t count) {
    const device::PinnedBlock pinned(gpu(), count * sizeof(T));
    gpu().copy_out(stream_, pinned.get(), from, count * sizeof(T));
    wait();
    std::vector<T> values(count);
    std::memcpy(values.data(), pinned.get(), count * sizeof(T));
    return values;
  }

  void wait() {
    const auto done = gpu().make_event();
    gpu().record(done, stream_);
    gpu().wait(done);
  }

  ThisGpu this_;
  device::Gpu::Stream stream_{};
};

/// Of all magnitudes, including subnormal and infinite ones, and zeros of both signs; a few blocks and a remainder.
std::vector<float> numbers(std::uint64_t seed) {
  RandomStream random(seed, 0);
  std::vector<float> values(10'007);
  for (float& value : values) {
    const std::uint32_t bits = random.word();
    value = (bits & 0x7f800000U) == 0x7f800000U ? 0.0F : std::bit_cast<float>(bits);
  }
  values[0] = -0.0F;
  values[1] = std::numeric_limits<float>::infinity();
  values[2] = -values[1];
  return values;
}

std::vector<std::uint16_t> downcast_of(DType dtype, const std::vector<float>& values) {
  std::vector<std::uint16_t> to(values.size());
  downcast(dtype, values.data(), to.data(), std::ssize(values));
  return to;
}

std::vector<float> upcast_of(DType dtype, const std::vector<std::uint16_t>& values) {
  std::vector<float> to(values.size());
  upcast(dtype, values.data(), to.data(), std::ssize(values));
  return to;
}

std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> to;
  for (const float value : values) to.push_back(value != value ? 0x7fc00000U : std::bit_cast<std::uint32_t>(value));
  return to;
}

}  // namespace

TEST_F(StepOnGpu, SumsAndProductsHaveTheBitsOfTheCpu) {
  const auto left = numbers(1), right = numbers(2);
  const auto n = std::ssize(left);
  std::vector<float> sums, products;
  for (std::size_t i = 0; i < left.size(); ++i) sums.push_back(left[i] + right[i]);
  for (const float value : left) products.push_back(value * 0.37F);

  const auto on_gpu = put(left), other = put(right), factor = put(std::vector{0.37F});
  const device::GpuBlock out(gpu(), left.size() * sizeof(float));
  gpu().add(stream_, on_gpu.as<float>(), other.as<float>(), out.as<float>(), n);
  EXPECT_EQ(bits(fetch<float>(out, left.size())), bits(sums));
  gpu().scale(stream_, on_gpu.as<float>(), factor.as<float>(), n, n);
  EXPECT_EQ(bits(fetch<float>(on_gpu, left.size())), bits(products));

  constexpr std::int64_t kColumns = 3;  // a factor for each so many
  const std::int64_t whole = n / kColumns * kColumns;
  const auto factors = numbers(5);
  for (std::int64_t i = 0; i < whole; ++i) {
    products[static_cast<std::size_t>(i)] *= factors[static_cast<std::size_t>(i / kColumns)];
  }
  const auto of_rows = put(factors);
  gpu().scale(stream_, on_gpu.as<float>(), of_rows.as<float>(), whole, kColumns);
  EXPECT_EQ(bits(fetch<float>(on_gpu, left.size())), bits(products));
}

TEST_F(StepOnGpu, CastsAndLowPrecisionSumsHaveTheBitsOfTheCpu) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const auto left = numbers(3), right = numbers(4);
    const auto n = std::ssize(left);
    const auto low_left = downcast_of(dtype, left), low_right = downcast_of(dtype, right);
    const auto wide_left = upcast_of(dtype, low_left), wide_right = upcast_of(dtype, low_right);
    std::vector<float> sums;
    for (std::size_t i = 0; i < left.size(); ++i) sums.push_back(wide_left[i] + wide_right[i]);

    const auto wide = put(left), two = put(low_left), other = put(low_right);
    const device::GpuBlock out(gpu(), left.size() * sizeof(float));
    gpu().cast(stream_, device::Cast::downcast, dtype, wide.get(), out.get(), n);
    EXPECT_EQ(fetch<std::uint16_t>(out, left.size()), low_left);
    gpu().cast(stream_, device::Cast::upcast, dtype, two.get(), out.get(), n);
    EXPECT_EQ(bits(fetch<float>(out, left.size())), bits(wide_left));
    gpu().cast(stream_, device::Cast::round, dtype, wide.get(), out.get(), n);
    EXPECT_EQ(bits(fetch<float>(out, left.size())), bits(upcast_of(dtype, low_left)));
    gpu().add(stream_, dtype, two.get(), other.get(), out.get(), n);
    EXPECT_EQ(bits(upcast_of(dtype, fetch<std::uint16_t>(out, left.size()))),
              bits(upcast_of(dtype, downcast_of(dtype, sums))));
  }
}

TEST_F(StepOnGpu, UpdatesHaveTheBitsOfTheCpu) {
  auto* const make = this_.module.library.find<UpdateKernels*()>(kModuleMakeUpdateKernels);
  ASSERT_NE(make, nullptr);
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<OptimizerOptions> all = {sgd(0),
                                             sgd(0.9, true, 0.1),
                                             decaying("adam"),
                                             decaying("adamw"),
                                             decaying("nadam"),
                                             decaying("lion"),
                                             decaying("adagrad"),
                                             decaying("rmsprop"),
                                             rmsprop(0.9, false),
                                             rmsprop(0, true),
                                             rmsprop(0.9, true),
                                             decaying("lamb"),
                                             lars(0),
                                             averaged(lars(0.9)),
                                             muon(true),
                                             adafactor(false)};
  const auto compare = [&](DType precision, const OptimizerOptions& options, double clip_norm,
                           const SumsScaling& scaling, std::int64_t width = 300) {
    UpdaterBench bench(precision, width);
    std::vector<std::byte> copy;
    const auto read = [&](const void* memory, std::size_t bytes) {
      copy = fetch<std::byte>(static_cast<const std::byte*>(memory), bytes);
      return copy.data();
    };
    const auto found = bench.on_gpu(gpu(), std::unique_ptr<const UpdateKernels>(make()), options, clip_norm, scaling,
                                    [&](GpuUpdater& updater) { bench.expect_copies(updater, read); });
    EXPECT_TRUE(found == bench.on_host(options, clip_norm, scaling))
        << name_of(precision) << ", " << text_of(options) << ", clip_norm " << clip_norm << ", " << scaling.on;
  };
  const SumsScaling scaled{true, 4096, 1, infinity};
  for (const OptimizerOptions& options : all) {
    compare(DType::f32, options, 0, SumsScaling{});
    compare(DType::f32, options, 0.5, scaled);
    for (const DType low : {DType::bf16, DType::f16}) compare(low, options, 0.5, SumsScaling{});
  }
  compare(DType::f32, adafactor(true), 0.5, SumsScaling{}, 600);  // more tiles than a thread reads ahead
  compare(DType::f32, all.front(), 0.5, SumsScaling{});
  compare(DType::f32, all.front(), 0, scaled);
  compare(DType::f32, all.front(), 0, SumsScaling{true, 4096, 1, infinity, true});
}

// Products in tiles of 64 x 64 elements, of which a thread has four rows beside each other and columns 16 apart, with
// steps of 16 terms and blocks of 256: matrices that end behind each of a thread's rows and columns, whose lines can be
// read four elements at once and whose cannot, longer than a block of terms, and with fewer rows than a step has terms.
TEST_F(StepOnGpu, StepsOfMatricesHaveTheBitsOfTheCpu) {
  auto* const make = this_.module.library.find<UpdateKernels*()>(kModuleMakeUpdateKernels);
  ASSERT_NE(make, nullptr);
  const std::unique_ptr<const UpdateKernels> kernels(make());
  for (const auto& [rows, columns] :
       {std::pair{27, 108}, {44, 300}, {57, 59}, {70, 41}, {131, 72}, {1, 5}, {67, 130}, {258, 261}, {12, 20}}) {
    const Attributes settings = complete(make_muon().attributes, Attributes({{"steps", std::int64_t{2}}}), "muon");
    std::vector<float> values(static_cast<std::size_t>(rows * columns));
    RandomStream random(6, static_cast<std::uint64_t>(rows));
    for (float& value : values) value = random.between(-1, 1);
    const auto on_gpu = put(values);
    const device::GpuBlock scratch(gpu(), NewtonSchulzScratch(nullptr, rows, columns).bytes);
    kernels->launch_transform(gpu().kernel_stream(stream_), {on_gpu.as<float>(), rows, columns, scratch.get()}, "muon",
                              settings);
    const std::vector<float> found = fetch<float>(on_gpu, values.size());
    orthogonalize(values, rows, columns, MuonMatrix::iteration(settings, rows, columns));
    EXPECT_EQ(bits(found), bits(values)) << rows << " x " << columns;
  }
}

}  // namespace lockstep::optim
