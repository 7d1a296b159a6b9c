// Each optimizer compared with its published formula in double, over several steps, with sizes that leave SIMD
// remainders.
#include "lockstep/optimizer.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "lockstep/error.hpp"
#include "lockstep/random.hpp"
#include "optim/registry.hpp"

namespace lockstep::optim {

namespace {

constexpr std::size_t kSize = 37;
constexpr int kSteps = 5;

OptimizerRegistry built_in() {
  OptimizerRegistry registry;
  add_built_in(registry);
  return registry;
}

/// An optimizer and its settings.
struct Chosen {
  OptimizerRegistry registry = built_in();
  const OptimizerDef& def;
  Attributes settings;
  Chosen(const std::string& name, const Attributes& given)
      : def(registry.at(name)), settings(complete(def.attributes, given, name, def.checks)) {}
  void update(const UpdateStep& step, const ParameterRun& run) const { def.update(settings, step)(run); }
};

struct Reference {
  const Chosen& chosen;
  std::vector<double> p, m, v;

  void step(const std::vector<float>& g, double rate, int t) {
    const std::string& name = chosen.def.name;
    const auto setting = [&](const char* key) { return chosen.settings.number(key); };
    for (std::size_t i = 0; i < p.size(); ++i) {
      double gradient = static_cast<double>(g[i]);
      if (name != "adamw") gradient += setting("weight_decay") * p[i];
      if (name == "sgd") {
        m[i] = setting("momentum") * m[i] + gradient;
        p[i] -= rate * (chosen.settings.boolean("nesterov") ? gradient + setting("momentum") * m[i] : m[i]);
        continue;
      }
      const double beta1 = setting("beta1"), beta2 = setting("beta2");
      m[i] = beta1 * m[i] + (1 - beta1) * gradient;
      v[i] = beta2 * v[i] + (1 - beta2) * gradient * gradient;
      if (name == "adamw") p[i] *= 1 - rate * setting("weight_decay");
      p[i] -=
          rate * (m[i] / (1 - std::pow(beta1, t))) / (std::sqrt(v[i] / (1 - std::pow(beta2, t))) + setting("epsilon"));
    }
  }
};

void compare(const std::string& name, const Attributes& given) {
  const Chosen chosen(name, given);
  std::vector<float> p(kSize), first(kSize), second(kSize), g(kSize);
  RandomStream random(7, 0);
  for (auto& value : p) value = random.between(-1, 1);
  Reference reference{chosen, {p.begin(), p.end()}, std::vector<double>(kSize), std::vector<double>(kSize)};
  std::vector<float*> states = {first.data(), second.data()};
  states.resize(chosen.def.states(chosen.settings).size());
  for (int step = 0; step < kSteps; ++step) {
    for (auto& value : g) value = random.between(-1, 1);
    const UpdateStep of{.learning_rate = 0.05, .update = step};
    // Two runs, cut at an odd place: the cut must have no effect.
    chosen.update(of, {{p.data(), 5}, {g.data(), 5}, states, true});
    auto rest = states;
    for (auto& state : rest) state += 5;
    chosen.update(of, {{p.data() + 5, kSize - 5}, {g.data() + 5, kSize - 5}, rest, true});
    reference.step(g, 0.05, step + 1);
  }
  for (std::size_t i = 0; i < kSize; ++i) EXPECT_NEAR(static_cast<double>(p[i]), reference.p[i], 2e-6) << i;
}

}  // namespace

TEST(Optimizer, Sgd) {
  compare("sgd", {});
}
TEST(Optimizer, SgdMomentumDecay) {
  compare("sgd", Attributes({{"momentum", 0.9}, {"weight_decay", 0.01}}));
}
TEST(Optimizer, SgdNesterov) {
  compare("sgd", Attributes({{"momentum", 0.9}, {"nesterov", true}}));
}
TEST(Optimizer, Adam) {
  compare("adam", Attributes({{"weight_decay", 0.01}}));
}
TEST(Optimizer, AdamW) {
  compare("adamw", Attributes({{"beta2", 0.99}, {"weight_decay", 0.1}}));
}

// With bias correction, the second moment of a constant gradient is its square from the first step on. So the parameter
// moves by the rate in each step, whatever beta2 is: if beta2 and 1 - beta2 were rounded separately, it would not.
TEST(Optimizer, AdamWithBeta2NearOne) {
  for (const double beta2 : {0.999, 0.9999, 0.99999, 0.9999999, 0.99999999}) {
    const Chosen adam("adam", Attributes({{"beta2", beta2}, {"epsilon", 1e-12}}));
    float p = 0, m = 0, v = 0;
    const float g = 0.3F;
    const std::array<float*, 2> states = {&m, &v};
    for (int step = 0; step < 3000; ++step) {
      adam.update({.learning_rate = 1e-3, .update = step}, {{&p, 1}, {&g, 1}, states, true});
    }
    const double moment = 0.09 * -std::expm1(3000 * std::log(beta2));
    EXPECT_NEAR(static_cast<double>(v) / moment, 1, 5e-5) << beta2;  // fp32 adds 3,000 times
    EXPECT_NEAR(static_cast<double>(p), -3.0, 1e-4) << beta2;
  }
}

TEST(Optimizer, SimdBodyAndTailRoundAlike) {
  const Chosen adamw("adamw", Attributes({{"weight_decay", 0.1}}));
  std::vector<float> p(kSize, 0.3F), g(kSize, 0.7F), m(kSize, 0.1F), v(kSize, 0.2F);
  const std::array<float*, 2> states = {m.data(), v.data()};
  adamw.update({.learning_rate = 1e-3, .update = 3}, {p, g, states, true});
  for (std::size_t i = 1; i < kSize; ++i) EXPECT_EQ(p[i], p[0]);
}

TEST(Optimizer, NoDecayWhereTheModelSaysSo) {
  const Chosen adamw("adamw", Attributes({{"weight_decay", 0.5}}));
  float p = 1, g = 0, m = 0, v = 0;
  const std::array<float*, 2> states = {&m, &v};
  adamw.update({.learning_rate = 0.1, .update = 0}, {{&p, 1}, {&g, 1}, states, false});
  EXPECT_EQ(p, 1.0F);
}

TEST(OptimizerRegistry, ListsInOrderAndTakesEachNameOnce) {
  OptimizerRegistry registry = built_in();
  OptimizerDef own;
  own.name = "another";
  EXPECT_EQ(registry.add(own).name, "another");
  std::string names;
  for (const OptimizerDef* def : registry.all()) names += def->name + " ";
  EXPECT_EQ(names, "sgd adam adamw another ");
  try {
    registry.add(own);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the optimizer 'another' is registered twice");
  }
  try {
    (void)registry.at("lion");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "expected one of the optimizers sgd, adam, adamw, another, found 'lion'");
  }
}

}  // namespace lockstep::optim
