#include "train/fingerprint.hpp"

#include <gtest/gtest.h>

#include "lockstep/version.hpp"

namespace lockstep::train {

TEST(Fingerprint, IsTheSameEachTimeAndNamesVersions) {
  const Fingerprint first = take_fingerprint(), second = take_fingerprint();
  EXPECT_EQ(first.text(), second.text());
  EXPECT_EQ(first.kernels.size(), 16u);
  EXPECT_EQ(first.kernels.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(first.text(), "kernels " + first.kernels + ", " + first.libraries + ", lockstep " + std::string(version()));
  EXPECT_LT(first.text().size(), 128u);
}

}  // namespace lockstep::train
