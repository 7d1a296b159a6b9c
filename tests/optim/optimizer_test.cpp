// Each optimizer compared with its published formula in double, over several steps, with sizes that leave SIMD
// remainders.
#include "lockstep/optimizer.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "lockstep/error.hpp"
#include "lockstep/random.hpp"
#include "step/optim/registry.hpp"

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

/// One element and what an optimizer keeps for it: m, v and a third mean.
struct Element {
  double p, m = 0, v = 0, mean = 0;
};

struct Reference {
  const Chosen& chosen;
  std::vector<Element> elements;

  void step(const std::vector<float>& g, double rate, int t) {
    for (std::size_t i = 0; i < elements.size(); ++i) follow(elements[i], static_cast<double>(g[i]), rate, t);
  }

 private:
  [[nodiscard]] double setting(const char* key) const { return chosen.settings.number(key); }
  [[nodiscard]] bool flag(const char* key) const { return chosen.settings.boolean(key); }

  void follow(Element& e, double gradient, double rate, int t) const {
    const std::string& name = chosen.def.name;
    if (name == "adamw" || name == "lion") {
      e.p *= 1 - rate * setting("weight_decay");
    } else {
      gradient += setting("weight_decay") * e.p;
    }
    if (name == "sgd") return sgd(e, gradient, rate);
    if (name == "rmsprop") return rmsprop(e, gradient, rate);
    if (name == "lion") return lion(e, gradient, rate);
    if (name == "adagrad") return adagrad(e, gradient, rate, t);
    const double beta1 = setting("beta1"), beta2 = setting("beta2");
    e.m = beta1 * e.m + (1 - beta1) * gradient;
    e.v = beta2 * e.v + (1 - beta2) * gradient * gradient;
    const double root = std::sqrt(e.v / (1 - std::pow(beta2, t))) + setting("epsilon");
    e.p -= rate * (name == "nadam" ? nadam(e, gradient, t) : e.m / (1 - std::pow(beta1, t))) / root;
  }

  void sgd(Element& e, double gradient, double rate) const {
    e.m = setting("momentum") * e.m + gradient;
    e.p -= rate * (flag("nesterov") ? gradient + setting("momentum") * e.m : e.m);
  }

  void rmsprop(Element& e, double gradient, double rate) const {
    const double alpha = setting("alpha");
    e.v = alpha * e.v + (1 - alpha) * gradient * gradient;
    e.mean = alpha * e.mean + (1 - alpha) * gradient;
    const double variance = flag("centered") ? e.v - e.mean * e.mean : e.v;
    e.m = setting("momentum") * e.m + gradient / (std::sqrt(variance) + setting("epsilon"));
    e.p -= rate * e.m;
  }

  void lion(Element& e, double gradient, double rate) const {
    const double direction = setting("beta1") * e.m + (1 - setting("beta1")) * gradient;
    e.p -= rate * ((direction > 0 ? 1 : 0) - (direction < 0 ? 1 : 0));
    e.m = setting("beta2") * e.m + (1 - setting("beta2")) * gradient;
  }

  void adagrad(Element& e, double gradient, double rate, int t) const {
    e.v += (t == 1 ? setting("initial") : 0) + gradient * gradient;
    e.p -= rate * gradient / (std::sqrt(e.v) + setting("epsilon"));
  }

  [[nodiscard]] double nadam(const Element& e, double gradient, int t) const {
    const auto beta1_at = [&](int i) {
      return setting("beta1") * (1 - 0.5 * std::pow(0.96, i * setting("momentum_decay")));
    };
    double product = 1;
    for (int i = 1; i <= t; ++i) product *= beta1_at(i);
    return beta1_at(t + 1) * e.m / (1 - product * beta1_at(t + 1)) + (1 - beta1_at(t)) * gradient / (1 - product);
  }
};

void compare(const std::string& name, const Attributes& given) {
  const Chosen chosen(name, given);
  std::vector<float> p(kSize), first(kSize), second(kSize), third(kSize), g(kSize);
  RandomStream random(7, 0);
  Reference reference{chosen, {}};
  for (auto& value : p) {
    value = random.between(-1, 1);
    reference.elements.push_back({static_cast<double>(value)});
  }
  std::vector<float*> states = {first.data(), second.data(), third.data()};
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
  for (std::size_t i = 0; i < kSize; ++i) EXPECT_NEAR(static_cast<double>(p[i]), reference.elements[i].p, 2e-6) << i;
}

/// The published formulas of optimizers with a trust ratio, of a parameter that decays: the norms are over all
/// elements.
void follow_trusted(const Chosen& chosen, std::vector<Element>& elements, const std::vector<float>& g, double rate,
                    int t) {
  const auto setting = [&](const char* key) { return chosen.settings.number(key); };
  const auto norm_of = [&](const auto& value) {
    double sum = 0;
    for (std::size_t i = 0; i < elements.size(); ++i) sum += value(i) * value(i);
    return std::sqrt(sum);
  };
  const double decay = setting("weight_decay"), norm = norm_of([&](std::size_t i) { return elements[i].p; });
  if (chosen.def.name == "lars") {
    const double gradients = norm_of([&](std::size_t i) { return static_cast<double>(g[i]); });
    const double ratio = setting("trust") * norm / (gradients + decay * norm);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      Element& e = elements[i];
      e.m = setting("momentum") * e.m + rate * ratio * (static_cast<double>(g[i]) + decay * e.p);
      e.p -= e.m;
    }
    return;
  }
  const double beta1 = setting("beta1"), beta2 = setting("beta2");
  for (std::size_t i = 0; i < elements.size(); ++i) {
    Element& e = elements[i];
    const auto gradient = static_cast<double>(g[i]);
    e.m = beta1 * e.m + (1 - beta1) * gradient;
    e.v = beta2 * e.v + (1 - beta2) * gradient * gradient;
    e.mean =
        e.m / (1 - std::pow(beta1, t)) / (std::sqrt(e.v / (1 - std::pow(beta2, t))) + setting("epsilon")) + decay * e.p;
  }
  const double ratio = norm / norm_of([&](std::size_t i) { return elements[i].mean; });
  for (Element& e : elements) e.p -= rate * ratio * e.mean;
}

void compare_trusted(const std::string& name, const Attributes& given, double rate) {
  const Chosen chosen(name, given);
  std::vector<float> p(kSize), first(kSize), second(kSize), g(kSize);
  std::vector<float*> states = {first.data(), second.data()}, rest = {first.data() + 5, second.data() + 5};
  for (auto* both : {&states, &rest}) both->resize(chosen.def.states(chosen.settings).size());
  RandomStream random(7, 0);
  std::vector<Element> reference;
  for (auto& value : p) reference.push_back({static_cast<double>(value = random.between(-1, 1))});
  for (int step = 0; step < kSteps; ++step) {
    for (auto& value : g) value = random.between(-1, 1);
    const UpdateStep of{.learning_rate = rate, .update = step};
    std::vector<ParameterRun> runs = {{{p.data(), 5}, {g.data(), 5}, states, true},
                                      {{p.data() + 5, kSize - 5}, {g.data() + 5, kSize - 5}, rest, true}};
    const TrustRatio trust = chosen.def.trust_ratio(chosen.settings, of);
    SquareSums sums;
    for (const ParameterRun& run : runs) {
      const SquareSums more = trust.measure(run);
      sums = {sums.parameter + more.parameter, sums.direction + more.direction};
    }
    for (ParameterRun& run : runs) {
      run.trust = trust.ratio(std::sqrt(sums.parameter), std::sqrt(sums.direction), kSize);
      EXPECT_NE(run.trust, 1);
      chosen.update(of, run);
    }
    follow_trusted(chosen, reference, g, rate, step + 1);
  }
  for (std::size_t i = 0; i < kSize; ++i) EXPECT_NEAR(static_cast<double>(p[i]), reference[i].p, 2e-6) << i;
}

}  // namespace

TEST(Optimizer, Lamb) {
  compare_trusted("lamb", {}, 0.05);
  compare_trusted("lamb", Attributes({{"beta1", 0.8}, {"beta2", 0.95}, {"epsilon", 0.01}, {"weight_decay", 0.3}}),
                  0.05);
}
TEST(Optimizer, Lars) {
  compare_trusted("lars", Attributes({{"weight_decay", 0.1}, {"trust", 0.02}}), 5);
  compare_trusted("lars", Attributes({{"momentum", 0.0}}), 50);
}

// Where there is nothing to compare, the rate is the plain one.
TEST(Optimizer, ATrustRatioOfZerosIsOne) {
  for (const std::string name : {"lamb", "lars"}) {
    const Chosen chosen(name, {});
    const TrustRatio trust = chosen.def.trust_ratio(chosen.settings, {.learning_rate = 0.1, .update = 0});
    EXPECT_EQ(trust.ratio(0, 3, 1), 1) << name;
    EXPECT_EQ(trust.ratio(3, 0, 1), 1) << name;
    EXPECT_NE(trust.ratio(3, 2, 1), 1) << name;
  }
}

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
TEST(Optimizer, Nadam) {
  compare("nadam", Attributes({{"weight_decay", 0.01}, {"momentum_decay", 0.1}}));
}
TEST(Optimizer, RmsProp) {
  compare("rmsprop", Attributes({{"weight_decay", 0.01}}));
}
TEST(Optimizer, RmsPropMomentum) {
  compare("rmsprop", Attributes({{"alpha", 0.9}, {"momentum", 0.9}}));
}
TEST(Optimizer, RmsPropCentered) {
  compare("rmsprop", Attributes({{"alpha", 0.9}, {"centered", true}, {"epsilon", 0.01}}));
}
TEST(Optimizer, RmsPropCenteredMomentum) {
  compare("rmsprop", Attributes({{"centered", true}, {"momentum", 0.8}, {"weight_decay", 0.01}}));
}
TEST(Optimizer, Lion) {
  compare("lion", Attributes({{"beta2", 0.95}, {"weight_decay", 0.1}}));
}
TEST(Optimizer, Adagrad) {
  compare("adagrad", Attributes({{"initial", 0.1}, {"weight_decay", 0.01}}));
}

// Nobody knows where to go without a gradient, and the sign of a rounding must not decide it.
TEST(Optimizer, LionLeavesWhatHasNoGradient) {
  const Chosen lion("lion", {});
  float p = 0.5F, g = 0, m = 0;
  const std::array<float*, 1> states = {&m};
  for (int step = 0; step < 3; ++step) lion.update({.learning_rate = 0.1, .update = step}, {{&p, 1}, {&g, 1}, states});
  EXPECT_EQ(p, 0.5F);
}

// The variance of gradients that hardly change is 0 but for roundings, which may be below it.
TEST(Optimizer, CenteredRmsPropOfAConstantGradientStaysFinite) {
  const Chosen rmsprop("rmsprop", Attributes({{"centered", true}, {"alpha", 0.5}}));
  float p = 0, g = 0.3F, square = 0, mean = 0;
  const std::array<float*, 2> states = {&square, &mean};
  for (int step = 0; step < 200; ++step) {
    rmsprop.update({.learning_rate = 1e-9, .update = step}, {{&p, 1}, {&g, 1}, states});
    ASSERT_TRUE(std::isfinite(p)) << step;
  }
}

// After many updates the product of all beta1 is 0: the look ahead alone is left of Nadam's corrections.
TEST(Optimizer, NadamAfterManyUpdates) {
  const Chosen nadam("nadam", Attributes({{"epsilon", 1e-12}}));
  float p = 0, g = 0.3F, m = 0.3F, v = 0.09F;  // what a constant gradient has led to
  const std::array<float*, 2> states = {&m, &v};
  nadam.update({.learning_rate = 1e-3, .update = 10'000'000}, {{&p, 1}, {&g, 1}, states});
  EXPECT_NEAR(static_cast<double>(p), -1e-3, 1e-9);  // (1 - beta1) g + beta1 m over the root of v
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
  try {
    registry.add(own);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the optimizer 'another': expected `update` to be set");
  }
  own.update = registry.at("sgd").update;
  EXPECT_EQ(registry.add(own).name, "another");
  std::string names;
  for (const OptimizerDef* def : registry.all()) names += def->name + " ";
  EXPECT_EQ(names, "sgd adam adamw nadam rmsprop lion adagrad lamb lars muon adafactor another ");
  try {
    registry.add(own);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the optimizer 'another' is registered twice");
  }
  try {
    (void)registry.at("lionn");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "expected one of the optimizers sgd, adam, adamw, nadam, rmsprop, lion, adagrad, lamb, lars, muon, "
                 "adafactor, another, "
                 "found 'lionn'");
  }
}

}  // namespace lockstep::optim
