// Each check of what kernels do finds a fault planted in a small kernel, and reports where.
#include "cuda/interpreter/planted.hpp"

namespace lockstep::ptx {

namespace {

class KernelChecks : public Planted {};

}  // namespace

TEST_F(KernelChecks, NothingIsSaidOfARightKernel) {
  const Block block(128);
  kernel(std::string(kStore) + kLoad);
  EXPECT_EQ(run(block.get()), cudaSuccess);
  EXPECT_EQ(found(), Texts{});
}

TEST_F(KernelChecks, AccessesOutsideOfMemory) {
  const Block block(124);
  kernel(kStore);
  EXPECT_EQ(run(block.get()), cudaErrorIllegalAddress);
  EXPECT_EQ(found(),
            Texts{"planted (planted.ptx:21: st.global.u32 [%rd3], %r1) writes outside of memory; block 0, thread "
                  "31: 4 bytes 0 bytes behind GPU allocation " +
                  block.number() + " of 124 bytes"});
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorIllegalAddress) << "as a GPU, it stays broken";
  machine().problems.clear();
  kernel(kLoad);
  EXPECT_EQ(run(nullptr), cudaErrorIllegalAddress);
  EXPECT_EQ(found(),
            Texts{"planted (planted.ptx:21: ld.global.u32 %r3, [%rd3]) reads outside of memory; block 0, thread 0: "
                  "4 bytes in no allocation"});
  machine().problems.clear();
}

TEST_F(KernelChecks, UseAfterFree) {
  Block block(128);
  void* const memory = block.get();
  block.free();
  kernel(kStore);
  EXPECT_EQ(run(memory), cudaErrorIllegalAddress);
  EXPECT_EQ(found(),
            Texts{"planted (planted.ptx:21: st.global.u32 [%rd3], %r1) writes outside of memory; block 0, thread "
                  "0: 4 bytes in freed GPU allocation " +
                  block.number() + " of 128 bytes"});
  machine().problems.clear();
}

TEST_F(KernelChecks, TheHostsMemory) {
  const Block block(128, true);
  kernel(kStore);
  EXPECT_EQ(run(block.get()), cudaErrorIllegalAddress);
  EXPECT_EQ(found(),
            Texts{"planted (planted.ptx:21: st.global.u32 [%rd3], %r1) writes the host's memory; block 0, thread 0: "
                  "4 bytes 0 bytes from the start of pinned allocation " +
                  block.number() + " of 128 bytes, 4 of them"});
  machine().problems.clear();
}

TEST_F(KernelChecks, MisalignedAddresses) {
  const Block block(256);
  kernel(kStore);
  EXPECT_EQ(run(block.at(2)), cudaSuccess);
  ASSERT_EQ(found().size(), 1U);
  EXPECT_EQ(
      found()[0].substr(0, found()[0].find(" at 0x")),
      "planted (planted.ptx:21: st.global.u32 [%rd3], %r1) writes at a misaligned address; block 0, thread 0: 4 bytes");
}

TEST_F(KernelChecks, AVectorIsAlignedAsAWhole) {
  const Block block(256);
  kernel("st.global.v2.u32 [%rd3], {%r1, %r2};\n");
  EXPECT_EQ(run(block.at(4), 0, 1, 1), cudaSuccess);
  ASSERT_EQ(found().size(), 1U);
  EXPECT_EQ(found()[0].substr(0, found()[0].find(" at 0x")),
            "planted (planted.ptx:21: st.global.v2.u32 [%rd3], {%r1, %r2}) writes at a misaligned address; block 0, "
            "thread 0: 8 bytes");
}

TEST_F(KernelChecks, MemoryThatNobodyWrote) {
  const Block block(128), copy(128);
  clear(block.get(), 124);
  kernel(kLoad);
  EXPECT_EQ(run(block.get()), cudaSuccess);
  const std::string expected =
      "planted (planted.ptx:21: ld.global.u32 %r3, [%rd3]) reads memory that nobody wrote; block 0, "
      "thread 31: 124 bytes from the start of GPU allocation ";
  EXPECT_EQ(found(), Texts{expected + block.number() + " of 128 bytes, 4 of them"});
  machine().problems.clear();
  ASSERT_EQ(cudaMemcpyAsync(copy.get(), block.get(), 128, cudaMemcpyDeviceToDevice, stream_), cudaSuccess);
  EXPECT_EQ(run(copy.get()), cudaSuccess);
  EXPECT_EQ(found(), Texts{expected + copy.number() + " of 128 bytes, 4 of them"}) << "a copy of it is no more";
}

TEST_F(KernelChecks, RacesWithinAWarp) {
  const Block block(256);
  clear(block.get(), 256);
  // Each thread reads what its neighbor wrote, with a barrier in between and without.
  const std::string neighbor = "ld.global.u32 %r3, [%rd3+4];\n";
  kernel(std::string(kStore) + "bar.warp.sync -1;\n" + neighbor);
  EXPECT_EQ(run(block.get()), cudaSuccess);
  EXPECT_EQ(found(), Texts{});
  kernel(std::string(kStore) + neighbor);
  EXPECT_EQ(run(block.get()), cudaSuccess);
  EXPECT_EQ(found(),
            Texts{"planted (planted.ptx:22: ld.global.u32 %r3, [%rd3+4]) races: reads what another thread of the "
                  "launch writes; block 0, thread 0: 4 bytes from the start of GPU allocation " +
                  block.number() + " of 256 bytes, 4 of them"});
  machine().problems.clear();
  // A barrier of half a warp does not order its last thread and the other half's first one.
  kernel(std::string(kStore) + "setp.lt.u32 %p1, %r1, 16;\nselp.b32 %r4, 65535, -65536, %p1;\nbar.warp.sync %r4;\n" +
         neighbor);
  EXPECT_EQ(run(block.get()), cudaSuccess);
  ASSERT_EQ(found().size(), 1U);
  EXPECT_NE(found()[0].find("races: reads what another thread of the launch writes; block 0, thread 15:"),
            std::string::npos);
  machine().problems.clear();
  // Writes after reads.
  kernel(neighbor + kStore);
  EXPECT_EQ(run(block.get()), cudaSuccess);
  ASSERT_EQ(found().size(), 1U);
  EXPECT_NE(found()[0].find("races: writes what another thread of the launch reads; block 0, thread 1:"),
            std::string::npos);
  machine().problems.clear();
  // A shuffle does not order memory.
  kernel(std::string(kStore) + "shfl.sync.bfly.b32 %r5|%p1, %r1, 1, 31, -1;\n" + neighbor);
  EXPECT_EQ(run(block.get()), cudaSuccess);
  EXPECT_EQ(found().size(), 1U);
}

TEST_F(KernelChecks, RacesBetweenWarpsAndBlocks) {
  const Block block(1024);
  clear(block.get(), 1024);
  const std::string flag = "mov.u32 %r3, 1;\nst.global.u32 [%rd1], %r3;\n",
                    first = "setp.ne.s32 %p1, %r1, 0;\n@%p1 ret;\n";
  for (const unsigned blocks : {1U, 2U}) {
    kernel(blocks == 1 ? "and.b32 %r4, %r1, 31;\nsetp.ne.s32 %p1, %r4, 0;\n@%p1 ret;\n" + flag : first + flag);
    EXPECT_EQ(run(block.get(), 0, blocks, blocks == 1 ? 64 : 32), cudaSuccess);
    ASSERT_EQ(found().size(), 1U) << blocks;
    EXPECT_NE(found()[0].find("races: writes what another thread of the launch writes; block " +
                              std::string(blocks == 1 ? "0, thread 32:" : "1, thread 0:")),
              std::string::npos)
        << found()[0];
    machine().problems.clear();
  }
  // Atomic writes are not a race; a plain one among them is.
  const std::string atomic = "atom.global.or.b32 %r5, [%rd1], 1;\n";
  kernel(atomic);
  EXPECT_EQ(run(block.get(), 0, 2), cudaSuccess);
  EXPECT_EQ(found(), Texts{});
  kernel(atomic + "ld.global.u32 %r6, [%rd1];\n");
  EXPECT_EQ(run(block.get()), cudaSuccess);
  EXPECT_EQ(found().size(), 1U);
}

TEST_F(KernelChecks, ElementsOfTwoBytesAndOfOneAreNotTheirNeighbors) {
  const Block block(128);
  clear(block.get(), 128);
  kernel("mul.wide.u32 %rd4, %r1, 2;\nadd.s64 %rd4, %rd1, %rd4;\nst.global.u16 [%rd4], %rs1;\n");
  EXPECT_EQ(run(block.get()), cudaSuccess);
  kernel("cvt.u64.u32 %rd4, %r1;\nadd.s64 %rd4, %rd1, %rd4;\nst.global.u8 [%rd4], %rs1;\n");
  EXPECT_EQ(run(block.get()), cudaSuccess);
  EXPECT_EQ(found(), Texts{});
}

TEST_F(KernelChecks, MasksAndBarriers) {
  struct Case {
    const char* body;
    const char* text;
  };
  const std::vector<Case> cases = {
      {"bar.warp.sync 1;\n",
       "planted (planted.ptx:21: bar.warp.sync 1) waits with a mask that it is not in; block 0, thread 1"},
      {"setp.eq.s32 %p1, %r1, 3;\n@%p1 ret;\nbar.warp.sync -1;\n",
       "planted (planted.ptx:23: bar.warp.sync -1) waits for a lane that has left; block 0, thread 0"},
      {"setp.lt.u32 %p1, %r1, 16;\n@%p1 bra $L;\nbar.warp.sync -1;\n$L:\nbar.warp.sync 65535;\n",
       "planted (planted.ptx:23: bar.warp.sync -1) waits for a lane that has left; block 0, thread 16"},
      {"setp.lt.u32 %p1, %r1, 16;\n@%p1 bra $L;\nbar.warp.sync -1;\n$L:\nshfl.sync.idx.b32 %r5|%p2, %r1, 0, 31, -1;\n",
       "planted (planted.ptx:25: shfl.sync.idx.b32 %r5|%p2, %r1, 0, 31, -1) waits for lanes that never come; block 0, "
       "thread 0"},
      {"setp.lt.u32 %p1, %r1, 16;\nselp.b32 %r4, 65535, -65536, %p1;\nshfl.sync.idx.b32 %r5|%p2, %r1, 0, 31, %r4;\n",
       "planted (planted.ptx:23: shfl.sync.idx.b32 %r5|%p2, %r1, 0, 31, %r4) shuffles from a lane outside of the mask; "
       "block 0, "
       "thread 16"},
  };
  for (const Case& one : cases) {
    kernel(one.body);
    EXPECT_EQ(run(nullptr), cudaSuccess) << one.body;
    const Texts texts = found();
    EXPECT_TRUE(std::ranges::find(texts, one.text) != texts.end())
        << one.text << "\nfound " << (texts.empty() ? "nothing" : texts[0]);
    machine().problems.clear();
  }
}

TEST_F(KernelChecks, DivisionByZeroAndReadsBesideTheParameters) {
  kernel("div.u64 %rd4, %rd2, %rd2;\n");
  EXPECT_EQ(run(nullptr), cudaSuccess);
  EXPECT_EQ(found(), Texts{"planted (planted.ptx:21: div.u64 %rd4, %rd2, %rd2) divides by 0; block 0, thread 0"});
  machine().problems.clear();
  kernel("ld.param.u64 %rd4, [planted_param_1+8];\n");
  EXPECT_EQ(run(nullptr), cudaSuccess);
  EXPECT_EQ(found(),
            Texts{"planted (planted.ptx:21: ld.param.u64 %rd4, [planted_param_1+8]) reads beside the parameters; block "
                  "0, thread 0"});
}

TEST_F(KernelChecks, WhatIsNotKnownIsNamed) {
  struct Case {
    const char* line;
    const char* text;
  };
  const std::vector<Case> cases = {
      {"fma.rn.ftz.f32 %f1, %f1, %f2, %f3;\n", "instruction fma.rn.ftz.f32 isn't known"},
      {"add.rn.ftz.f32 %f1, %f1, %f2;\n", "instruction add.rn.ftz.f32 isn't known"},
      {"ld.global.nc.u32 %r3, [%rd3];\n", "instruction ld.global.nc.u32 isn't known"},
      {"st.global.v8.u32 [%rd3], {%r3, %r4};\n", "instruction st.global.v8.u32 isn't known"},
      {"ld.shared.u8 %r3, [%r1];\n", "instruction ld.shared.u8 isn't known"},
      {"ld.shared.u32 %r3, [%rd3];\n", "register %rd3 of another width"},
      {"bar.sync 1;\n", "instruction bar.sync isn't known"},
      {"mov.u32 %r3, %laneid;\n", "register %laneid isn't known"},
      {"add.s32 %r3, %r4, %rd1;\n", "register %rd1 of another width"},
      {"add.s32 %r3, %r4;\n", "another number of operands than is known"},
      {"add.s32 %r3, %r4, name;\n", "operand name isn't known"},
      {"bra $nowhere;\n", "label $nowhere isn't there"},
      {".shared .align 4 .b32 memory;\n", "a declaration that isn't known"},
  };
  for (const Case& one : cases) {
    kernel(one.line);
    EXPECT_EQ(run(nullptr), cudaErrorInvalidPtx);
    const std::string line(one.line, std::string_view(one.line).size() - 2);
    EXPECT_EQ(found(), Texts{"planted (planted.ptx:21: " + line + "): " + one.text});
    machine().problems.clear();
  }
  machine().load(".version 8.0\n", "old.ptx");
  machine().load(".global .u32 counter;\n", "variable.ptx");
  EXPECT_EQ(found(), (Texts{"old.ptx:1: expected PTX ISA 9.0: .version 8.0",
                            "variable.ptx:1: not known outside of kernels: .global .u32 counter;"}));
}

}  // namespace lockstep::ptx
