// The bodies of the update's GPU kernels, run on the CPU over their whole grid, have the bits of the CPU's optimizers.
#include "train/update_grid.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>

#include "core/philox.hpp"
#include "train/optimizer.hpp"

namespace lockstep::train {

namespace {

constexpr std::size_t kSize = 3 * backend::kBlockThreads + 5;
constexpr int kSteps = 4;

using Values = std::vector<float>;

Values values(const char* name, float low, float high) {
  RandomStream random(hash_name(name), 0);
  Values list(kSize);
  for (float& value : list) value = random.between(low, high);
  return list;
}

bool same_bits(const Values& a, const Values& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

template <class Body>
void run(const Body& body) {
  backend::HostGrid::each(nullptr, static_cast<std::int64_t>(kSize), body);
}

}  // namespace

TEST(UpdateGrid, SgdHasTheBitsOfTheCpus) {
  for (const double momentum : {0.0, 0.9}) {
    for (const bool nesterov : {false, true}) {
      if (nesterov && momentum == 0) continue;
      const OptimizerOptions options{.kind = "sgd", .momentum = momentum, .nesterov = nesterov, .weight_decay = 5e-4};
      const auto optimizer = make_optimizer(options);
      Values p = values("p", -1, 1), m(kSize), q = p, n(kSize);
      const SgdScalars scalars{0.1F, static_cast<float>(momentum), 5e-4F, nesterov};
      for (int step = 0; step < kSteps; ++step) {
        const Values g = values(step % 2 == 0 ? "even" : "odd", -1, 1);
        optimizer->begin_step({.learning_rate = 0.1, .step = step});
        std::array<float*, 1> states{m.data()};
        optimizer->update(p, g, std::span<float* const>(states).first(momentum > 0 ? 1 : 0), true);
        if (momentum > 0) {
          run(SgdMomentumBody{q.data(), g.data(), n.data(), scalars});
        } else {
          run(SgdPlainBody{q.data(), g.data(), scalars});
        }
        ASSERT_TRUE(same_bits(p, q)) << "momentum " << momentum << ", step " << step;
        ASSERT_TRUE(same_bits(m, n)) << "momentum " << momentum << ", step " << step;
      }
    }
  }
}

TEST(UpdateGrid, AdamHasTheBitsOfTheCpus) {
  for (const bool decoupled : {false, true}) {
    OptimizerOptions options{.kind = decoupled ? "adamw" : "adam", .weight_decay = 0.01};
    const auto optimizer = make_optimizer(options);
    Values p = values("p", -1, 1), m(kSize), v(kSize), q = p, m2(kSize), v2(kSize);
    for (int step = 0; step < kSteps; ++step) {
      const Values g = values(step % 2 == 0 ? "even" : "odd", -1, 1);
      optimizer->begin_step({.learning_rate = 0.01, .step = step});
      std::array<float*, 2> states{m.data(), v.data()};
      optimizer->update(p, g, states, true);
      const double t = step + 1;
      const float rate = 0.01F;
      const AdamScalars scalars{.beta1 = 0.9F,
                                .beta2 = 0.999F,
                                .epsilon = 1e-8F,
                                .first_correction = static_cast<float>(1 / (1 - std::pow(0.9, t))),
                                .second_correction = static_cast<float>(1 / std::sqrt(1 - std::pow(0.999, t))),
                                .rate = rate,
                                .coupled_decay = decoupled ? 0.0F : 0.01F,
                                .keep = decoupled ? static_cast<float>(1 - static_cast<double>(rate) * 0.01) : 1.0F};
      run(AdamBody{q.data(), g.data(), m2.data(), v2.data(), scalars});
      ASSERT_TRUE(same_bits(p, q)) << options.kind << ", step " << step;
      ASSERT_TRUE(same_bits(m, m2)) << options.kind << ", step " << step;
      ASSERT_TRUE(same_bits(v, v2)) << options.kind << ", step " << step;
    }
  }
}

TEST(UpdateGrid, MeansClippingAndStatistics) {
  const Values sum = values("sum", -100, 100);
  Values gradient(kSize), state = values("state", -1, 1);
  const Values before = state;
  run(DivideBody{sum.data(), gradient.data(), 48.0F});
  run(BlendBody{state.data(), sum.data(), 0.1F, 8.0F});
  Values scaled = gradient;
  run(ScaleBody{scaled.data(), 0.3F});
  for (std::size_t i = 0; i < kSize; ++i) {
    ASSERT_EQ(gradient[i], sum[i] / 48.0F);
    ASSERT_EQ(scaled[i], gradient[i] * 0.3F);
    ASSERT_EQ(state[i], (1.0F - 0.1F) * before[i] + 0.1F * (sum[i] / 8.0F));
  }
}

}  // namespace lockstep::train
