#include "lockstep/random.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace lockstep {

TEST(RandomStream, DependsOnNothingButKeyAndId) {
  RandomStream first(7, 42), again(7, 42), other_id(7, 43), other_key(8, 42), other_lane(7, 42, 1);
  std::set<std::uint32_t> words;
  for (int i = 0; i < 9; ++i) {  // more than one Philox block
    const std::uint32_t word = first.word();
    EXPECT_EQ(word, again.word());
    for (const std::uint32_t drawn : {word, other_id.word(), other_key.word(), other_lane.word()}) words.insert(drawn);
  }
  EXPECT_EQ(words.size(), 36U) << "streams of other keys, ids and lanes differ";
}

TEST(RandomStream, StaysInItsRange) {
  RandomStream stream(1, 2);
  double sum = 0;
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) {
    const float unit = stream.unit();
    ASSERT_GE(unit, 0.0F);
    ASSERT_LT(unit, 1.0F);
    sum += unit;
    ++counts.at(stream.below(7));
  }
  EXPECT_NEAR(sum / 70000, 0.5, 0.01);                            // 9 standard deviations
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);  // 5 standard deviations
  EXPECT_EQ(to_unit(0xffffffff), 1.0F - 0x1p-24F);
}

TEST(HashName, IsFnv1a) {
  // From the authors' test vectors.
  EXPECT_EQ(hash_name(""), 0xcbf29ce484222325);
  EXPECT_EQ(hash_name("a"), 0xaf63dc4c8601ec8c);
  EXPECT_EQ(hash_name("foobar"), 0x85944171f73967e8);
}

}  // namespace lockstep
