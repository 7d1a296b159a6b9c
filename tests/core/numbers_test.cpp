#include "core/numbers.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace lockstep {
namespace {

TEST(Numbers, TheWholeTextIsANumber) {
  EXPECT_EQ(number_from<double>("0.4"), 0.4);
  EXPECT_EQ(number_from<double>("+1.5e-3"), 1.5e-3);
  EXPECT_EQ(number_from<double>(".5"), 0.5);
  EXPECT_EQ(number_from<double>("5."), 5.0);
  EXPECT_EQ(number_from<std::int64_t>("-12"), -12);
  for (const char* no : {"", "+", "+-1", " 1", "1 ", "1,5", "0.4x", "x"})
    EXPECT_EQ(number_from<double>(no), std::nullopt) << no;
  EXPECT_EQ(number_from<std::int64_t>("99999999999999999999"), std::nullopt);
}

TEST(Numbers, TooSmallIsZeroAndTooLargeIsInfinite) {
  EXPECT_EQ(number_from<double>("1e-400"), 0.0);
  EXPECT_EQ(number_from<double>("1e400"), HUGE_VAL);
  EXPECT_EQ(number_from<double>("-1e400"), -HUGE_VAL);
  EXPECT_EQ(number_from<double>("0." + std::string(400, '0') + "1"), 0.0);
  EXPECT_EQ(number_from<double>("1" + std::string(400, '0') + ".5"), HUGE_VAL);
}

TEST(Numbers, WhatFollowsIsReturned) {
  std::string_view rest;
  EXPECT_EQ(leading_number<double>("2.5GiB", &rest), 2.5);
  EXPECT_EQ(rest, "GiB");
}

}  // namespace
}  // namespace lockstep
