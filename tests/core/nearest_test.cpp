#include <gtest/gtest.h>

#include "core/nearest.hpp"

namespace lockstep {
namespace {

TEST(Nearest, CountsEdits) {
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("momentum", "momentum"), 0);
  EXPECT_EQ(edit_distance("momentun", "momentum"), 1);
  EXPECT_EQ(edit_distance("nmae", "name"), 1) << "two neighbours that changed places are one mistake";
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(Nearest, SuggestsOnlyWhatIsNear) {
  const std::vector<std::string> known{"momentum", "nesterov", "weight_decay"};
  EXPECT_EQ(nearest("momentom", known), "momentum");
  EXPECT_EQ(nearest("weigth_decay", known), "weight_decay");
  EXPECT_EQ(nearest("learning_rate", known), "");
  EXPECT_EQ(did_you_mean("nestrov", known), "; did you mean 'nesterov'?");
  EXPECT_EQ(did_you_mean("x", known), "");
}

}  // namespace
}  // namespace lockstep
