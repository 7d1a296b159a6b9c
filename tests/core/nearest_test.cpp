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
  EXPECT_EQ(did_you_mean("y", {"a", "b"}), "");
}

}  // namespace

TEST(Nearest, KnowsTheWordsOfOtherPrograms) {
  const std::vector<std::string> layers = {"add", "conv", "linear", "max_pool", "relu"};
  for (const char* word : {"dense", "Dense", "Linear", "fc", "FullyConnected", "fully_connected"}) {
    EXPECT_EQ(nearest(word, layers), "linear") << word;
  }
  EXPECT_EQ(nearest("Conv2D", layers), "conv");
  EXPECT_EQ(nearest("MaxPool2d", layers), "max_pool");
  for (const char* word : {"Conv1d", "Conv1D", "Convolution1D"}) EXPECT_EQ(nearest(word, layers), "conv") << word;
  for (const char* word : {"MaxPool1d", "MaxPooling1D"}) EXPECT_EQ(nearest(word, layers), "max_pool") << word;
  const std::vector<std::string> others = {"avg_pool", "conv_transpose", "instance_norm", "max", "mean",
                                           "pad",      "upsample"};
  for (const char* word : {"AvgPool1d", "AveragePooling1D"}) EXPECT_EQ(nearest(word, others), "avg_pool") << word;
  for (const char* word : {"ConvTranspose1d", "Conv1DTranspose"}) {
    EXPECT_EQ(nearest(word, others), "conv_transpose") << word;
  }
  for (const char* word : {"ZeroPadding1D", "ZeroPad1d", "ReflectionPad1d"})
    EXPECT_EQ(nearest(word, others), "pad") << word;
  EXPECT_EQ(nearest("UpSampling1D", others), "upsample");
  EXPECT_EQ(nearest("InstanceNorm1d", others), "instance_norm");
  EXPECT_EQ(nearest("AdaptiveAvgPool1d", others), "mean");
  EXPECT_EQ(nearest("AdaptiveMaxPool1d", others), "max");
  EXPECT_EQ(nearest("TopKCategoricalAccuracy", {"accuracy", "top5"}), "top5");
  EXPECT_EQ(nearest("ReLU", layers), "relu");
  EXPECT_EQ(nearest("gpu", {"cpu", "cuda"}), "cuda") << "although cpu is nearer by letters";
  EXPECT_EQ(nearest("dense", {"add", "relu"}), "") << "ours must be among the known ones";
}

}  // namespace lockstep
