// Checks that the fake detects what it should: the tests of host logic below rely on it.
#include "device/fake_gpu.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "device/gpu/gpu_memory.hpp"
#include "device/gpu/input_stage.hpp"
#include "lockstep/error.hpp"

namespace lockstep::device {

namespace {

constexpr std::size_t kBytes = 64;

std::string mistake(const std::function<void()>& body) {
  try {
    body();
  } catch (const FakeGpu::Mistake& found) {
    return found.what();
  }
  return "none";
}

std::array<std::byte, kBytes> batch(int number) {
  std::array<std::byte, kBytes> bytes{};
  bytes.fill(static_cast<std::byte>(number));
  return bytes;
}

void put(InputStage& stage, int number) {
  const auto bytes = batch(number);
  const std::array<std::span<const std::byte>, 1> parts = {bytes};
  stage.put(parts);
}

}  // namespace

class FakeGpuTest : public testing::Test {
 protected:
  FakeGpu gpu;
  Gpu::Stream a = gpu.make_stream(), b = gpu.make_stream();
  Gpu::Event event = gpu.make_event();
  std::byte* device = gpu.allocate(kBytes);
  std::byte* pinned = gpu.allocate_pinned(kBytes);
};

TEST_F(FakeGpuTest, AReadOnAnotherStreamMustWait) {
  gpu.kernel_writes(a, device, kBytes);
  EXPECT_EQ(mistake([&] { gpu.kernel_reads(b, device, 1); }),
            "stream 1 reads without waiting for stream 0, which writes");
  gpu.record(event, a);
  gpu.wait(b, event);
  EXPECT_EQ(mistake([&] { gpu.kernel_reads(b, device, 1); }), "none");
}

TEST_F(FakeGpuTest, AnEventStandsForWhatCameBeforeItsRecordOnly) {
  gpu.record(event, a);
  gpu.kernel_writes(a, device, kBytes);
  gpu.wait(b, event);
  EXPECT_EQ(mistake([&] { gpu.kernel_reads(b, device, 1); }),
            "stream 1 reads without waiting for stream 0, which writes");
}

TEST_F(FakeGpuTest, AWriteMustWaitForReaders) {
  gpu.kernel_reads(a, device, kBytes);
  EXPECT_EQ(mistake([&] { gpu.kernel_writes(b, device, kBytes); }),
            "stream 1 writes without waiting for stream 0, which reads");
}

TEST_F(FakeGpuTest, ReadersAndOtherBytesNeedNoOrder) {
  gpu.kernel_writes(a, device, 32);
  gpu.kernel_writes(b, device + 32, 32);
  gpu.kernel_reads(a, device, 16);
  std::byte* other = gpu.allocate(kBytes);
  gpu.kernel_reads(a, other, kBytes);
  gpu.kernel_reads(b, other, kBytes);
  EXPECT_EQ(mistake([&] { gpu.kernel_writes(b, device + 31, 2); }),
            "stream 1 writes without waiting for stream 0, which writes");
}

TEST_F(FakeGpuTest, WaitingIsTransitive) {
  gpu.kernel_writes(a, device, kBytes);
  gpu.record(event, a);
  gpu.wait(event);  // the host has seen it, so what the host puts on b comes after it
  EXPECT_EQ(mistake([&] { gpu.kernel_writes(b, device, kBytes); }), "none");
}

TEST_F(FakeGpuTest, TheHostMustWaitForCopies) {
  gpu.fill(pinned, batch(1).data(), kBytes);
  gpu.copy_in(a, device, pinned, kBytes);
  EXPECT_EQ(mistake([&] { gpu.fill(pinned, batch(2).data(), kBytes); }),
            "the host writes without waiting for stream 0, which reads");
  gpu.copy_out(a, pinned, device, kBytes);
  EXPECT_EQ(mistake([&] { gpu.reads(pinned, kBytes); }), "the host reads without waiting for stream 0, which writes");
  gpu.record(event, a);
  gpu.wait(event);
  EXPECT_EQ(mistake([&] { gpu.reads(pinned, kBytes); }), "none");
}

TEST_F(FakeGpuTest, MemoryLivesUntilItsLastUse) {
  gpu.kernel_writes(a, device, kBytes);
  EXPECT_EQ(mistake([&] { gpu.free(device); }), "freed memory that stream 0 may still use");
  gpu.record(event, a);
  gpu.wait(event);
  gpu.free(device);
  EXPECT_EQ(mistake([&] { gpu.kernel_reads(a, device, 1); }), "stream 0 uses memory that is not allocated");
  EXPECT_EQ(mistake([&] { gpu.free(device); }), "freed memory that is not there");
}

TEST_F(FakeGpuTest, BoundsAndKindsOfMemory) {
  EXPECT_EQ(mistake([&] { gpu.kernel_reads(a, device, kBytes + 1); }), "stream 0 uses memory that is not allocated");
  EXPECT_EQ(mistake([&] { gpu.kernel_reads(a, pinned, 1); }),
            "stream 0 takes the host's memory for the GPU's, or the reverse");
  EXPECT_EQ(mistake([&] { gpu.free_pinned(device); }), "freed memory that is not there");
}

TEST(GpuArena, GrowsOnDemandAndKeepsItsBlockOtherwise) {
  FakeGpu gpu;
  {
    GpuArena arena(gpu);
    std::byte* first = arena.reserve(1000);
    EXPECT_EQ(arena.bytes(), std::size_t{2} << 20);
    EXPECT_EQ(arena.reserve(std::size_t{2} << 20), first);
    EXPECT_NE(arena.reserve((std::size_t{2} << 20) + 1), first);
    EXPECT_EQ(arena.bytes(), std::size_t{4} << 20);
    EXPECT_EQ(gpu.blocks_alive(), 1U);
  }
  EXPECT_EQ(gpu.blocks_alive(), 0U);
}

TEST(GpuArena, WaitsForItsLastUseBeforeItGrowsOrGoes) {
  FakeGpu gpu;
  const auto stream = gpu.make_stream();
  GpuArena arena(gpu);
  gpu.kernel_writes(stream, arena.reserve(1), 1);
  arena.used_by(stream);
  std::byte* larger = nullptr;
  EXPECT_EQ(mistake([&] { larger = arena.reserve(std::size_t{3} << 20); }), "none");
  gpu.kernel_writes(stream, larger, 1);
  arena.used_by(stream);
}

TEST(GpuArena, AUseThatItWasNotToldOfIsFound) {
  FakeGpu gpu;
  const auto stream = gpu.make_stream();
  const auto event = gpu.make_event();
  GpuArena arena(gpu);
  gpu.kernel_writes(stream, arena.reserve(1), 1);
  EXPECT_EQ(mistake([&] { (void)arena.reserve(std::size_t{3} << 20); }), "freed memory that stream 0 may still use");
  gpu.record(event, stream);
  gpu.wait(event);
}

// Many batches through few slots, read by kernels: every necessary wait is present, and the bytes arrive.
TEST(InputStage, BatchesArriveInOrderAtEveryDepth) {
  for (const std::size_t depth : {1U, 2U, 3U}) {
    FakeGpu gpu;
    const auto compute = gpu.make_stream();
    {
      InputStage stage(gpu, compute, kBytes, depth);
      int put = 0;
      for (int i = 0; i < 20; ++i) {
        for (; put < 20 && put < i + static_cast<int>(depth); ++put) device::put(stage, put);
        const std::byte* on_gpu = stage.take();
        gpu.kernel_reads(compute, on_gpu, kBytes);
        EXPECT_EQ(on_gpu[0], static_cast<std::byte>(i)) << "depth " << depth;
        EXPECT_EQ(on_gpu[kBytes - 1], static_cast<std::byte>(i)) << "depth " << depth;
        stage.release();
      }
    }
    EXPECT_EQ(gpu.blocks_alive(), 0U);
  }
}

TEST(InputStage, PartsOfABatchStandApart) {
  FakeGpu gpu;
  const auto compute = gpu.make_stream();
  InputStage stage(gpu, compute, InputStage::kPart + 3, 1);
  const std::array<std::byte, 5> first{std::byte{1}};
  const std::array<std::byte, 3> second{std::byte{2}};
  stage.put(std::array<std::span<const std::byte>, 2>{first, second});
  const std::byte* on_gpu = stage.take();
  gpu.kernel_reads(compute, on_gpu, InputStage::kPart + 3);
  EXPECT_EQ(on_gpu[0], std::byte{1});
  EXPECT_EQ(on_gpu[InputStage::kPart], std::byte{2});
  stage.release();
  const std::array<std::byte, 4> large{};
  EXPECT_THROW(stage.put(std::array<std::span<const std::byte>, 2>{first, large}), Error);
}

TEST(InputStage, AKernelAfterReleaseIsFound) {
  FakeGpu gpu;
  const auto compute = gpu.make_stream();
  const auto done = gpu.make_event();
  InputStage stage(gpu, compute, kBytes, 1);
  put(stage, 1);
  const std::byte* on_gpu = stage.take();
  stage.release();
  gpu.kernel_reads(compute, on_gpu, kBytes);
  EXPECT_EQ(mistake([&] { put(stage, 2); }), "stream 1 writes without waiting for stream 0, which reads");
  gpu.record(done, compute);
  gpu.wait(done);
}

TEST(InputStage, AKernelOnAnotherStreamIsFound) {
  FakeGpu gpu;
  const auto compute = gpu.make_stream(), other = gpu.make_stream();
  InputStage stage(gpu, compute, kBytes);
  put(stage, 1);
  const std::byte* on_gpu = stage.take();
  EXPECT_EQ(mistake([&] { gpu.kernel_reads(other, on_gpu, 1); }),
            "stream 1 reads without waiting for stream 2, which writes");
  stage.release();
}

}  // namespace lockstep::device
