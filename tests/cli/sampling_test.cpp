#include "cli/sampling.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

namespace lockstep::cli {
namespace {

// Probabilities 0.5, 0.25, 0.125, 0.125, in another order.
const std::array<float, 4> kScores = {std::log(0.125F), std::log(0.5F), std::log(0.125F), std::log(0.25F)};

std::set<std::int32_t> drawn(const SamplingOptions& options) {
  RandomStream random(1, 0);
  std::set<std::int32_t> tokens;
  for (int i = 0; i < 400; ++i) tokens.insert(draw_token(kScores, options, random));
  return tokens;
}

TEST(Sampling, TopPTakesTheFewestThatSumToIt) {
  using Tokens = std::set<std::int32_t>;
  EXPECT_EQ(drawn({.temperature = 1}), (Tokens{0, 1, 2, 3}));
  EXPECT_EQ(drawn({.temperature = 1, .top_p = 0.8}), (Tokens{0, 1, 3})) << "of equal ones the first";
  EXPECT_EQ(drawn({.temperature = 1, .top_p = 0.7}), (Tokens{1, 3}));
  EXPECT_EQ(drawn({.temperature = 1, .top_p = 0.4}), (Tokens{1}));
  EXPECT_EQ(drawn({.temperature = 1, .top_p = 1e-9}), (Tokens{1})) << "never none";
  EXPECT_EQ(drawn({.temperature = 1, .top_k = 2, .top_p = 0.6}), (Tokens{1})) << "of what top-k leaves: 2/3 and 1/3";
  EXPECT_EQ(drawn({.temperature = 1, .top_k = 2, .top_p = 0.7}), (Tokens{1, 3}));
  EXPECT_EQ(drawn({.temperature = 0}), (Tokens{1}));
}

TEST(StopText, EndsBeforeASequence) {
  StopText stop({"END", "\n\n"});
  EXPECT_EQ(stop.add("one E"), "one ");
  EXPECT_EQ(stop.add("N"), "");
  EXPECT_EQ(stop.add("tails"), "ENtails");
  EXPECT_EQ(stop.add("\n"), "");
  EXPECT_EQ(stop.add("x\nEE"), "\nx\nE") << "an E, and perhaps the beginning of END";
  EXPECT_EQ(stop.rest(), "E");
  EXPECT_EQ(stop.add("ND more\n\n"), "");
  EXPECT_TRUE(stop.stopped());
  EXPECT_EQ(stop.rest(), "");
  EXPECT_EQ(stop.add("more"), "");
}

TEST(StopText, TakesTheFirstOfSeveralAndShowsAllWithoutAny) {
  StopText stop({"b", "abc"});
  EXPECT_EQ(stop.add("xabcd"), "x");
  EXPECT_TRUE(stop.stopped());
  StopText none({});
  EXPECT_EQ(none.add("all"), "all");
  EXPECT_FALSE(none.stopped());
}

}  // namespace
}  // namespace lockstep::cli
