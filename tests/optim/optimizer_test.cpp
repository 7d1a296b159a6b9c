// Each optimizer against its published formula in double, over several steps, at sizes that leave SIMD tails.
#include "optim/optimizer.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/philox.hpp"

namespace lockstep::optim {

namespace {

constexpr std::size_t kSize = 37;
constexpr int kSteps = 5;

struct Reference {
  OptimizerOptions o;
  std::vector<double> p, m, v;

  void step(const std::vector<float>& g, double rate, int t) {
    for (std::size_t i = 0; i < p.size(); ++i) {
      double gradient = static_cast<double>(g[i]);
      if (o.kind != "adamw") gradient += o.weight_decay * p[i];
      if (o.kind == "sgd") {
        m[i] = o.momentum * m[i] + gradient;
        p[i] -= rate * (o.nesterov ? gradient + o.momentum * m[i] : m[i]);
        continue;
      }
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * gradient;
      v[i] = o.beta2 * v[i] + (1 - o.beta2) * gradient * gradient;
      if (o.kind == "adamw") p[i] *= 1 - rate * o.weight_decay;
      p[i] -= rate * (m[i] / (1 - std::pow(o.beta1, t))) / (std::sqrt(v[i] / (1 - std::pow(o.beta2, t))) + o.epsilon);
    }
  }
};

void compare(const OptimizerOptions& options) {
  const auto optimizer = make_optimizer(options);
  std::vector<float> p(kSize), first(kSize), second(kSize), g(kSize);
  RandomStream random(7, 0);
  for (auto& value : p) value = random.between(-1, 1);
  Reference reference{options, {p.begin(), p.end()}, std::vector<double>(kSize), std::vector<double>(kSize)};
  std::vector<float*> states = {first.data(), second.data()};
  states.resize(optimizer->state_names().size());
  for (int step = 0; step < kSteps; ++step) {
    for (auto& value : g) value = random.between(-1, 1);
    optimizer->begin_step({.learning_rate = 0.05, .update = step});
    // Two runs, cut at an odd place: the cut must not show.
    optimizer->update({p.data(), 5}, {g.data(), 5}, states, true);
    auto rest = states;
    for (auto& state : rest) state += 5;
    optimizer->update({p.data() + 5, kSize - 5}, {g.data() + 5, kSize - 5}, rest, true);
    reference.step(g, 0.05, step + 1);
  }
  for (std::size_t i = 0; i < kSize; ++i) EXPECT_NEAR(static_cast<double>(p[i]), reference.p[i], 2e-6) << i;
}

}  // namespace

TEST(Optimizer, Sgd) {
  compare({.kind = "sgd"});
}
TEST(Optimizer, SgdMomentumDecay) {
  compare({.kind = "sgd", .momentum = 0.9, .weight_decay = 0.01});
}
TEST(Optimizer, SgdNesterov) {
  compare({.kind = "sgd", .momentum = 0.9, .nesterov = true});
}
TEST(Optimizer, Adam) {
  compare({.kind = "adam", .weight_decay = 0.01});
}
TEST(Optimizer, AdamW) {
  compare({.kind = "adamw", .beta2 = 0.99, .weight_decay = 0.1});
}

// The second moment of a constant gradient is its square from the first step on, once it is corrected. So the parameter
// moves by the rate each step, whatever beta2 is: with beta2 and 1 - beta2 rounded one by one it would not.
TEST(Optimizer, AdamWithBeta2NearOne) {
  for (const double beta2 : {0.999, 0.9999, 0.99999, 0.9999999, 0.99999999}) {
    const auto optimizer = make_optimizer({.kind = "adam", .beta1 = 0.9, .beta2 = beta2, .epsilon = 1e-12});
    std::vector<float> p = {0.0F}, m = {0.0F}, v = {0.0F};
    const std::vector<float> g = {0.3F};
    std::vector<float*> states = {m.data(), v.data()};
    for (int step = 0; step < 3000; ++step) {
      optimizer->begin_step({.learning_rate = 1e-3, .update = step});
      optimizer->update(p, g, states, true);
    }
    const double moment = 0.09 * -std::expm1(3000 * std::log(beta2));
    EXPECT_NEAR(static_cast<double>(v[0]) / moment, 1, 5e-5) << beta2;  // fp32 adds 3,000 times
    EXPECT_NEAR(static_cast<double>(p[0]), -3.0, 1e-4) << beta2;
  }
}

TEST(Optimizer, SimdBodyAndTailRoundAlike) {
  const auto optimizer = make_optimizer({.kind = "adamw", .weight_decay = 0.1});
  optimizer->begin_step({.learning_rate = 1e-3, .update = 3});
  std::vector<float> p(kSize, 0.3F), g(kSize, 0.7F), m(kSize, 0.1F), v(kSize, 0.2F);
  std::vector<float*> states = {m.data(), v.data()};
  optimizer->update(p, g, states, true);
  for (std::size_t i = 1; i < kSize; ++i) EXPECT_EQ(p[i], p[0]);
}

TEST(Optimizer, NoDecayWhereTheModelSaysSo) {
  const auto optimizer = make_optimizer({.kind = "adamw", .weight_decay = 0.5});
  optimizer->begin_step({.learning_rate = 0.1, .update = 0});
  std::vector<float> p = {1.0F}, g = {0.0F}, m = {0.0F}, v = {0.0F};
  std::vector<float*> states = {m.data(), v.data()};
  optimizer->update(p, g, states, false);
  EXPECT_EQ(p[0], 1.0F);
}

}  // namespace lockstep::optim
