// Shared memory and the barriers of a block: what they do, and that faults in their use are found.
#include <algorithm>

#include "cuda/interpreter/planted.hpp"

namespace lockstep::ptx {

namespace {

class SharedChecks : public Planted {
 protected:
  /// A block of 64 threads, whose elements of shared memory have the addresses %r7 of the thread and %r8 of the one of
  /// the other warp.
  static void shared_kernel(const std::string& body, const std::string& declared = "256") {
    kernel(".shared .align 16 .b8 tile[" + declared +
           "];\nmov.u32 %r6, tile;\nshl.b32 %r7, %r1, 2;\nadd.s32 %r7, %r6, %r7;\n"
           "xor.b32 %r8, %r1, 32;\nshl.b32 %r8, %r8, 2;\nadd.s32 %r8, %r6, %r8;\n" +
           body);
  }
  /// The same with a size that the launch states, and with the address %r8 of another lane of the warp.
  static void dynamic_kernel(const std::string& body) {
    kernel(
        "mov.u32 %r6, tile;\nshl.b32 %r7, %r1, 2;\nadd.s32 %r7, %r6, %r7;\n"
        "xor.b32 %r8, %r1, 3;\nshl.b32 %r8, %r8, 2;\nadd.s32 %r8, %r6, %r8;\n" +
            body,
        ".extern .shared .align 16 .b8 tile[];\n");
  }
  cudaError_t run_dynamic(const Block& block, std::size_t bytes) {
    const cudaError_t launched = launch_on(stream_, block.get(), 0, 2, 64, bytes);
    return launched == cudaSuccess ? cudaStreamSynchronize(stream_) : launched;
  }
  cudaError_t run_block(const Block& block) { return run(block.get(), 0, 2, 64); }
  static std::string said() { return found().empty() ? "" : found()[0]; }
  static constexpr const char* kPut = "st.shared.u32 [%r7], %r1;\n";
  static constexpr const char* kTake = "ld.shared.u32 %r3, [%r8];\n";
  static constexpr const char* kBarrier = "bar.sync 0;\n";
};

}  // namespace

TEST_F(SharedChecks, WarpsExchangeWhatTheyHaveBehindABarrier) {
  const Block block(256), pinned(256, true);
  for (const u32 seed : {0U, 1U, 2U}) {
    machine().draw = Draw(seed);
    shared_kernel(std::string(kPut) + kBarrier + kTake + kBarrier + "st.shared.u32 [%r7], %r3;\n" +
                  "setp.ne.s32 %p1, %r2, 0;\n@%p1 ret;\nst.global.u32 [%rd3], %r3;\n");
    ASSERT_EQ(run_block(block), cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(pinned.get(), block.get(), 256, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(found(), Texts{});
    for (u32 i = 0; i < 64; ++i) EXPECT_EQ(static_cast<const u32*>(pinned.get())[i], i ^ 32U) << i;
  }
}

TEST_F(SharedChecks, VectorsOfIt) {
  const Block block(256), pinned(256, true);
  shared_kernel(
      "shl.b32 %r9, %r1, 3;\nadd.s32 %r9, %r6, %r9;\nst.shared.v2.u32 [%r9], {%r1, %r2};\n"
      "ld.shared.v2.b32 {%r3, %r4}, [%r9];\nsetp.ne.s32 %p1, %r2, 0;\n@%p1 ret;\nst.global.u32 [%rd3], %r3;\n",
      "512");
  ASSERT_EQ(run_block(block), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(pinned.get(), block.get(), 256, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(found(), Texts{});
  EXPECT_EQ(static_cast<const u32*>(pinned.get())[63], 63U);
}

TEST_F(SharedChecks, OfASizeThatTheLaunchStates) {
  const Block block(256), pinned(256, true);
  for (const u32 seed : {0U, 1U, 2U}) {
    machine().draw = Draw(seed);
    dynamic_kernel(std::string(kPut) + "bar.warp.sync -1;\n" + kTake +
                   "setp.ne.s32 %p1, %r2, 0;\n@%p1 ret;\nst.global.u32 [%rd3], %r3;\n");
    ASSERT_EQ(run_dynamic(block, 256), cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(pinned.get(), block.get(), 256, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(found(), Texts{});
    for (u32 i = 0; i < 64; ++i) EXPECT_EQ(static_cast<const u32*>(pinned.get())[i], i ^ 3U) << i;
  }
}

TEST_F(SharedChecks, WarpsOrderTheirLanesOnly) {
  struct Case {
    std::string body, text;
    std::size_t bytes = 256;
  };
  const std::string put = kPut, take = kTake, barrier = "bar.warp.sync -1;\n";
  const std::string other_warp = "xor.b32 %r8, %r8, 128;\n";
  const std::string halves = "setp.lt.u32 %p1, %r9, 16;\nselp.b32 %r10, 65535, -65536, %p1;\nbar.warp.sync %r10;\n";
  const std::string other_half = "and.b32 %r9, %r1, 31;\nxor.b32 %r8, %r8, 64;\n";
  const std::vector<Case> cases = {
      {put + take, "races: reads what another thread of the block writes"},
      {put + barrier + take + put, "races: writes what another thread of the block reads"},
      {put + barrier + other_warp + take, "races: reads what another thread of the block writes"},
      {other_half + put + halves + take, "races: reads what another thread of the block writes"},
      {put, "thread 63: 4 bytes at 252 of 252", 252},
      {put, "with 49153 bytes of shared memory", std::size_t{48} * 1024 + 1},
      {".shared .align 4 .b8 more[4];\n", "shared memory of a size that is declared and of another"},
  };
  for (const Case& one : cases) {
    const Block block(256);
    machine().draw = Draw(0);
    dynamic_kernel(one.body);
    (void)run_dynamic(block, one.bytes);
    const Texts texts = found();
    EXPECT_TRUE(std::ranges::any_of(texts, [&](const auto& text) { return text.find(one.text) != std::string::npos; }))
        << one.text << "\nfound " << said();
    machine().problems.clear();
  }
}

TEST_F(SharedChecks, Faults) {
  struct Case {
    std::string body;
    const char* text;
  };
  const std::string put = kPut, take = kTake, barrier = kBarrier;
  const std::vector<Case> cases = {
      {put + take, "races: reads what another thread of the block writes"},
      {take + put, "reads shared memory that no thread of the block wrote"},
      {put + barrier + take + put, "races: writes what another thread of the block reads"},
      {put + "st.shared.u32 [%r8], %r1;\n", "races: writes what another thread of the block writes"},
      {"st.shared.u32 [%r7+4], %r1;\n", "thread 63: 4 bytes at 256 of 256"},
      {"ld.shared.u32 %r3, [%r7+-4];\n", "reads outside of shared memory"},
      {"st.shared.u32 [%r7+2], %r1;\n", "writes at a misaligned address"},
      {"setp.lt.u32 %p1, %r1, 16;\n@%p1 ret;\nbar.sync 0;\n", "waits for lanes that never come"},
      {"setp.lt.u32 %p1, %r1, 32;\n@%p1 ret;\nbar.sync 0;\n", "waits for lanes that never come"},
      {"setp.lt.u32 %p1, %r1, 16;\n@%p1 bra $L;\nbar.sync 0;\nbra $M;\n$L:\nbar.sync 0;\n$M:\n",
       "waits for lanes that never come"},
  };
  for (const u32 seed : {0U, 3U}) {
    for (const Case& one : cases) {
      const Block block(256);
      machine().draw = Draw(seed);
      shared_kernel(one.body);
      (void)run_block(block);
      const Texts texts = found();
      EXPECT_TRUE(
          std::ranges::any_of(texts, [&](const auto& text) { return text.find(one.text) != std::string::npos; }))
          << one.text << "\nfound " << said();
      machine().problems.clear();
    }
  }
}

}  // namespace lockstep::ptx
