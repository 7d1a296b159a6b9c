// What the ranks of trials have written, in one file for Prometheus.
#include "tools/sweep/scrape_targets.hpp"

#include <gtest/gtest.h>

namespace lockstep::sweep {
namespace {

TEST(ScrapeTargets, HaveTheLabelsOfTheSweepAndTheTrial) {
  EXPECT_EQ(targets_of("s", {}), "[]\n");
  const std::string own = R"([{"targets": ["127.0.0.1:9841"], "labels": {"run": "0007", "host": "a"}}])";
  EXPECT_EQ(targets_of("s", {{7, own}}), R"([
  {
    "targets": [
      "127.0.0.1:9841"
    ],
    "labels": {
      "run": "0007",
      "host": "a",
      "sweep": "s",
      "trial": "7"
    }
  }
]
)");
}

TEST(ScrapeTargets, WhatIsNoListOfTargetsIsLeftOut) {
  EXPECT_EQ(targets_of("s", {{0, ""}, {1, "{"}, {2, "[]"}, {3, "[7]"}, {4, R"([{"targets": []}])"}}), "[]\n");
}

}  // namespace
}  // namespace lockstep::sweep
