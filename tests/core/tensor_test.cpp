#include "lockstep/tensor.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "lockstep/error.hpp"

namespace lockstep {

TEST(Shape, CountsItsElements) {
  EXPECT_EQ(elements(Shape{}), 1) << "a scalar";
  EXPECT_EQ(elements({16, 32, 32, 3}), 49152);
  EXPECT_EQ(elements({4, 0, 7}), 0);
  EXPECT_EQ(to_string(Shape{16, 32}), "[16, 32]");
}

TEST(TensorSpec, BytesFollowTheDtype) {
  EXPECT_EQ((TensorSpec{DType::f64, {3}}.bytes()), 24U);
  EXPECT_EQ((TensorSpec{DType::bf16, {3}}.bytes()), 6U);
  EXPECT_EQ((TensorSpec{DType::u8, {3}}.bytes()), 3U);
}

TEST(Tensor, IsAlignedForVectorLoads) {
  for (const std::int64_t count : {0, 1, 63, 4097}) {
    const Tensor tensor({DType::f32, {count}});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.bytes()) % 64, 0U);
    EXPECT_EQ(tensor.as<float>().size(), static_cast<std::size_t>(count));
  }
}

TEST(Tensor, KnowsTheTypeOfItsElements) {
  Tensor tensor({DType::i32, {2, 3}});
  tensor.as<std::int32_t>()[5] = 7;
  EXPECT_EQ(std::as_const(tensor).as<std::int32_t>()[5], 7);
  EXPECT_EQ(Tensor({DType::bf16, {4}}).as<std::uint16_t>().size(), 4U) << "its bits";
  try {
    (void)tensor.as<float>();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_STREQ(error.what(), "a tensor: expected elements of f32, found i32 [2, 3]");
  }
}

}  // namespace lockstep
