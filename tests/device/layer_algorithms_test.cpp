#include "device/layer_algorithms.hpp"
#include "device/gpu/wanted_algorithm.hpp"

#include <gtest/gtest.h>

namespace lockstep::device {

TEST(LayerAlgorithms, AreReadBackFromTheirText) {
  const LayerAlgorithms parts{"cuBLASLt algorithm 20, tile 15, stages 18", "eng4_k2=3", std::string(kOwnKernel)};
  EXPECT_EQ(parts.text(),
            "output: cuBLASLt algorithm 20, tile 15, stages 18; input's gradient: eng4_k2=3; weight's gradient: own "
            "kernel");
  const LayerAlgorithms read = LayerAlgorithms::of(parts.text());
  EXPECT_EQ(read.output, parts.output);
  EXPECT_EQ(read.input_gradient, parts.input_gradient);
  EXPECT_EQ(read.weight_gradient, parts.weight_gradient);
}

TEST(LayerAlgorithms, WhatIsEmptyIsLeftOut) {
  const LayerAlgorithms attention{"eng2_k24=7", "eng6_k24=26", ""};
  EXPECT_EQ(attention.text(), "output: eng2_k24=7; input's gradient: eng6_k24=26");
  const LayerAlgorithms read = LayerAlgorithms::of(attention.text());
  EXPECT_EQ(read.input_gradient, "eng6_k24=26");
  EXPECT_EQ(read.weight_gradient, "");
  EXPECT_EQ(LayerAlgorithms{"A"}.text(), "output: A");
}

TEST(LayerAlgorithms, OfAnotherTextAreEmpty) {
  for (const char* text : {"", "the first", "weight's gradient: C"}) {
    const LayerAlgorithms parts = LayerAlgorithms::of(text);
    EXPECT_EQ(parts.output + parts.input_gradient + parts.weight_gradient, "") << text;
  }
}

TEST(LayerAlgorithms, APlanThatIsNotThereHasItsMessage) {
  const GpuPlace place{.host = "node7", .rank = 2, .gpu = "GPU 0 (NVIDIA A100, 0000:3b:00.0)"};
  const Error error = algorithm_not_there(place, {"head", "eng4_k2=3"});
  EXPECT_EQ(error.code(), ExitCode::usage);
  EXPECT_STREQ(error.what(),
               "rank 2 on node7: 'head': expected the algorithm that rank 0 chose (eng4_k2=3), found that the library "
               "does not propose it here; use one kind of GPU and one version of the libraries, or set exact: "
               "preferred");
}

}  // namespace lockstep::device
