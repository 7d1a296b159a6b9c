#include "observe/telemetry/text.hpp"

#include <gtest/gtest.h>

#include "core/words.hpp"

namespace lockstep::telemetry {
namespace {

TEST(Text, ManyRanksAreARange) {
  events::ByRank values;
  for (int rank = 0; rank < 12; ++rank) values[rank] = rank;
  EXPECT_EQ(to_text(values, events::Unit::none), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11");
  for (int rank = 12; rank < 20; ++rank) values[rank] = rank;
  EXPECT_EQ(to_text(values, events::Unit::none), "0 to 19");
}

TEST(Text, NumbersByName) {
  EXPECT_EQ(to_text(events::ByName{{"depth", 4}, {"read_threads", 1}}, events::Unit::none), "depth 4, read threads 1");
  EXPECT_EQ(to_text(events::ByName{}, events::Unit::none), "none");
}

TEST(Text, NumbersInColumns) {
  EXPECT_EQ(fixed_number(0), "0.0000");
  EXPECT_EQ(fixed_number(0.65331), "0.6533");
  EXPECT_EQ(fixed_number(12.5), "12.5000");
  EXPECT_EQ(fixed_number(1.23e-5), "1.23e-05");
  EXPECT_EQ(fixed_number(8071.9), "8,072");
  EXPECT_EQ(clock_time(4.7), "0:05");
  EXPECT_EQ(clock_time(3723), "1:02:03");
}

TEST(Text, Numbers) {
  EXPECT_EQ(byte_count(0), "0 B");
  EXPECT_EQ(byte_count(999), "999 B");
  EXPECT_EQ(byte_count(999600), "1 MB");
  EXPECT_EQ(byte_count(1.5e15), "1.5e+03 TB");
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
  EXPECT_EQ(grouped(-123), "-123");
  EXPECT_EQ(short_number(0.123456), "0.1235");
  EXPECT_EQ(short_number(1e-5), "1e-05");
  EXPECT_EQ(duration(0.1234), "0.123 s");
  EXPECT_EQ(duration(59.99), "1:00");
  EXPECT_EQ(duration(3723), "1:02:03");
}

}  // namespace
}  // namespace lockstep::telemetry
