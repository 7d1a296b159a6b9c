// What instructions compute in unusual cases: NaNs, zeros, ends of ranges, shuffles, diverging lanes.
#include <bit>
#include <limits>

#include "cuda/interpreter/planted.hpp"

namespace lockstep::ptx {

namespace {

class Meanings : public Planted {
 protected:
  /// The value that each thread stores in its element.
  std::vector<u32> results(const std::string& body, u64 number = 0, unsigned threads = 32) {
    const Block block(threads * 4), pinned(threads * 4, true);
    kernel(body);
    EXPECT_EQ(launch(block.get(), number, 1, threads), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(pinned.get(), block.get(), threads * 4, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(found(), Texts{});
    const auto* const values = static_cast<const u32*>(pinned.get());
    return {values, values + threads};
  }
  /// %r3 of the first thread.
  u32 result(const std::string& body, u64 number = 0) {
    return results(body + "st.global.u32 [%rd3], %r3;\n", number)[0];
  }
  float number(const std::string& body) {
    return std::bit_cast<float>(results(body + "st.global.f32 [%rd3], %f3;\n")[0]);
  }
  u32 bits(const std::string& body) { return results(body + "st.global.f32 [%rd3], %f3;\n")[0]; }
};

constexpr const char* kNan = "0f7FC00001";

}  // namespace

TEST_F(Meanings, WhatIsNoNumberHasOneForm) {
  EXPECT_EQ(bits(std::string("add.rn.f32 %f3, ") + kNan + ", 0f3F800000;\n"), 0x7fffffffU);
  EXPECT_EQ(bits("div.rn.f32 %f3, 0f00000000, 0f00000000;\n"), 0x7fffffffU);
  EXPECT_EQ(bits("sqrt.rn.f32 %f3, 0fBF800000;\n"), 0x7fffffffU);
  EXPECT_EQ(bits(std::string("mov.f32 %f3, ") + kNan + ";\n"), 0x7fc00001U) << "a move keeps it";
}

TEST_F(Meanings, TheLargerOfZerosAndOfWhatIsNoNumber) {
  EXPECT_EQ(bits("max.f32 %f3, 0f80000000, 0f00000000;\n"), 0U);
  EXPECT_EQ(bits("max.f32 %f3, 0f00000000, 0f80000000;\n"), 0U);
  EXPECT_EQ(bits("min.f32 %f3, 0f00000000, 0f80000000;\n"), 0x80000000U);
  EXPECT_EQ(number(std::string("max.f32 %f3, ") + kNan + ", 0fBF800000;\n"), -1.0F);
  EXPECT_EQ(bits(std::string("max.f32 %f3, ") + kNan + ", " + kNan + ";\n"), 0x7fffffffU);
}

TEST_F(Meanings, BytesArePermuted) {
  const std::string words = "mov.u32 %r4, 0x83828180;\nmov.u32 %r5, 0x77767574;\nprmt.b32 %r3, %r4, %r5, ";
  EXPECT_EQ(result(words + "0x7604;\n"), 0x77768074U);
  EXPECT_EQ(result(words + "0x3210;\n"), 0x83828180U);
  EXPECT_EQ(result(words + "0xfb41;\n"), 0x00ff7481U) << "signs of bytes";
}

TEST_F(Meanings, SubnormalNumbersAreKept) {
  EXPECT_EQ(bits("add.rn.f32 %f3, 0f00000001, 0f00000001;\n"), 2U);
  EXPECT_EQ(bits("mul.rn.f32 %f3, 0f00800000, 0f3F000000;\n"), 0x00400000U);
}

TEST_F(Meanings, ComparisonsOfWhatIsNoNumber) {
  const auto compare = [&](const std::string& how) {
    return result("setp." + how + ".f32 %p1, " + kNan + ", 0f3F800000;\nselp.b32 %r3, 1, 0, %p1;\n");
  };
  for (const char* const is_false : {"eq", "ne", "lt", "le", "gt", "ge", "num"})
    EXPECT_EQ(compare(is_false), 0U) << is_false;
  for (const char* const is_true : {"equ", "neu", "ltu", "leu", "gtu", "geu", "nan"})
    EXPECT_EQ(compare(is_true), 1U) << is_true;
}

TEST_F(Meanings, EndsOfRanges) {
  EXPECT_EQ(result("shl.b32 %r3, 1, 32;\n"), 0U);
  EXPECT_EQ(result("shr.s32 %r3, -8, 40;\n"), 0xffffffffU);
  EXPECT_EQ(result("shr.u32 %r3, -8, 32;\n"), 0U);
  EXPECT_EQ(result("mul.hi.u32 %r3, -1, -1;\n"), 0xfffffffeU);
  EXPECT_EQ(result("mul.hi.u64 %rd4, -1, -1;\ncvt.u32.u64 %r3, %rd4;\n"), 0xfffffffeU);
  EXPECT_EQ(result("mul.hi.s64 %rd4, -1, 6148914691236517206;\ncvt.u32.u64 %r3, %rd4;\n"), 0xffffffffU);
  EXPECT_EQ(result("mul.wide.s32 %rd4, -2, 3;\nshr.u64 %rd4, %rd4, 32;\ncvt.u32.u64 %r3, %rd4;\n"), 0xffffffffU);
  EXPECT_EQ(result("rem.s64 %rd4, -7, 3;\ncvt.u32.u64 %r3, %rd4;\n"), static_cast<u32>(-1));
  EXPECT_EQ(result("cvt.rzi.s64.f32 %rd4, 0fC0200000;\ncvt.u32.u64 %r3, %rd4;\n"), static_cast<u32>(-2)) << "of -2.5";
  EXPECT_EQ(result("cvt.rzi.s64.f32 %rd4, 0f7F800000;\nshr.u64 %rd4, %rd4, 32;\ncvt.u32.u64 %r3, %rd4;\n"),
            0x7fffffffU);
  EXPECT_EQ(result("cvt.rzi.s32.f64 %r3, 0dC004000000000000;\n"), static_cast<u32>(-2)) << "of -2.5";
  EXPECT_EQ(result("cvt.rzi.s32.f64 %r3, 0d7FF0000000000000;\n"), 0x7fffffffU) << "of infinity";
  EXPECT_EQ(result("bfi.b64 %rd4, 255, 0, 8, 4;\ncvt.u32.u64 %r3, %rd4;\n"), 0xf00U);
}

TEST_F(Meanings, ConversionsRoundToTheNearestEven) {
  EXPECT_EQ(number("cvt.rn.f32.u64 %f3, 16777217;\n"), 16777216.0F);
  EXPECT_EQ(number("cvt.rn.f32.s64 %f3, -16777219;\n"), -16777220.0F);
}

TEST_F(Meanings, LanesThatPartMeetAgain) {
  for (const u32 seed : {0U, 1U, 7U}) {  // some seeds let each lane run alone
    machine().draw = Draw(seed);
    // Each thread loops a different number of times, then all shuffle with the neighbor.
    const auto found = results(R"(mov.u32 %r3, 0;
mov.u32 %r4, 0;
$again:
setp.ge.u32 %p1, %r4, %r1;
@%p1 bra $done;
add.s32 %r3, %r3, 2;
add.s32 %r4, %r4, 1;
bra.uni $again;
$done:
shfl.sync.bfly.b32 %r5|%p2, %r3, 1, 31, -1;
st.global.u32 [%rd3], %r5;
)");
    for (u32 lane = 0; lane < 32; ++lane) EXPECT_EQ(found[lane], 2 * (lane ^ 1U)) << lane;
  }
}

TEST_F(Meanings, ShufflesWithinSegments) {
  // 16 lanes: c = 0x101f has segments of 16, as __shfl_sync(..., 16) makes it.
  const auto found = results(
      "setp.lt.u32 %p1, %r1, 16;\nselp.b32 %r4, 65535, -65536, %p1;\n"
      "shfl.sync.idx.b32 %r5|%p2, %r1, 3, 4127, %r4;\nst.global.u32 [%rd3], %r5;\n");
  EXPECT_EQ(found[0], 3U);
  EXPECT_EQ(found[15], 3U);
  EXPECT_EQ(found[16], 19U);
  // If the source is beyond its segment, a lane keeps its own value, and its predicate says so.
  const auto beyond = results(
      "shfl.sync.bfly.b32 %r5|%p2, %r1, 16, 4127, -1;\nselp.b32 %r5, %r5, 99, %p2;\n"
      "st.global.u32 [%rd3], %r5;\n");
  EXPECT_EQ(beyond[3], 99U);
}

TEST_F(Meanings, WhatIsNarrowIsExtended) {
  EXPECT_EQ(result("st.global.u16 [%rd3], -1;\nld.global.s16 %r3, [%rd3];\n"), 0xffffffffU);
  EXPECT_EQ(result("st.global.u16 [%rd3], -1;\nld.global.u16 %r3, [%rd3];\n"), 0xffffU);
  EXPECT_EQ(result("ld.param.v2.u32 {%r4, %r5}, [planted_param_1];\nadd.s32 %r3, %r4, %r5;\n", 0x300000004U), 7U);
}

TEST_F(Meanings, Vectors) {
  const auto found = results(
      "setp.lt.u32 %p1, %r1, 8;\nmul.wide.u32 %rd4, %r1, 16;\nadd.s64 %rd4, %rd1, %rd4;\n"
      "@%p1 st.global.v4.u32 [%rd4], {%r1, 7, %r2, 9};\n");
  for (u32 lane = 0; lane < 8; ++lane) {
    EXPECT_EQ((std::vector(found.begin() + 4 * lane, found.begin() + 4 * lane + 4)), (std::vector<u32>{lane, 7, 0, 9}));
  }
  EXPECT_EQ(result("setp.lt.u32 %p1, %r1, 1;\n@%p1 st.global.v2.u32 [%rd3], {5, 6};\n"
                   "@%p1 ld.global.v2.u32 {%r4, %r3}, [%rd3];\nbar.warp.sync -1;\n"),
            6U);
}

TEST_F(Meanings, ABlockThatIsNotWholeWarps) {
  const auto found = results("mov.u32 %r4, %ntid.x;\nst.global.u32 [%rd3], %r4;\n", 0, 37);
  EXPECT_EQ(found[36], 37U);
}

}  // namespace lockstep::ptx
