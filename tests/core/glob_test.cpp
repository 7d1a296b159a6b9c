#include "core/words.hpp"

#include <gtest/gtest.h>

#include "lockstep/job.hpp"

namespace lockstep {

TEST(Glob, IsTheShells) {
  EXPECT_TRUE(matches("*.bias", "conv1.bias"));
  EXPECT_TRUE(matches("block?.*", "block3.conv.weight"));
  EXPECT_TRUE(matches("[ab]*", "b1"));
  EXPECT_FALSE(matches("*.bias", "conv1.bias.momentum"));
  EXPECT_TRUE(matches_any({"x", "conv*"}, "conv1"));
  EXPECT_FALSE(matches_any({}, "conv1"));
}

TEST(Place, SaysWhereAPersonShouldLook) {
  EXPECT_EQ((Place{.file = "job.yaml", .line = 3, .column = 7, .path = "job.seed"}.text()), "job.yaml:3:7: job.seed");
  EXPECT_EQ((Place{.file = "job.yaml", .line = 3, .column = 7, .path = ""}.text()), "job.yaml:3:7");
  EXPECT_EQ((Place{.file = "command line", .line = 0, .column = 0, .path = "job.seed"}.text()),
            "command line: job.seed");
}

}  // namespace lockstep
