#include "optim/optimizer.hpp"

#include <cmath>

#include "core/vectorize.hpp"
#include "lockstep/error.hpp"

namespace lockstep::optim {

namespace {

LOCKSTEP_VECTORIZED void run_sgd_plain(float* p, const float* g, std::int64_t n, SgdScalars s) {
  for (std::int64_t i = 0; i < n; ++i) sgd_plain(p[i], g[i], s);
}

LOCKSTEP_VECTORIZED void run_sgd_momentum(float* p, const float* g, float* m, std::int64_t n, SgdScalars s) {
  for (std::int64_t i = 0; i < n; ++i) sgd_momentum(p[i], g[i], m[i], s);
}

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const OptimizerOptions& options) : options_(options) {}
  [[nodiscard]] std::vector<std::string> state_names() const override {
    return options_.momentum > 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
  }
  void begin_step(const UpdateScalars& scalars) override {
    decayed_ = sgd_scalars(options_, scalars, true);
    plain_ = sgd_scalars(options_, scalars, false);
  }
  void update(std::span<float> parameter, std::span<const float> gradient, std::span<float* const> states,
              bool decay) const override {
    const SgdScalars& scalars = decay ? decayed_ : plain_;
    const auto n = static_cast<std::int64_t>(parameter.size());
    if (states.empty()) {
      run_sgd_plain(parameter.data(), gradient.data(), n, scalars);
    } else {
      run_sgd_momentum(parameter.data(), gradient.data(), states[0], n, scalars);
    }
  }

 private:
  OptimizerOptions options_;
  SgdScalars decayed_{}, plain_{};
};

LOCKSTEP_VECTORIZED void run_adam(float* p, const float* g, float* m, float* v, std::int64_t n, AdamScalars s) {
  for (std::int64_t i = 0; i < n; ++i) adam(p[i], g[i], m[i], v[i], s);
}

class Adam final : public Optimizer {
 public:
  explicit Adam(const OptimizerOptions& options) : options_(options) {}
  [[nodiscard]] std::vector<std::string> state_names() const override { return {"first_moment", "second_moment"}; }
  void begin_step(const UpdateScalars& scalars) override {
    decayed_ = adam_scalars(options_, scalars, true);
    plain_ = adam_scalars(options_, scalars, false);
  }
  void update(std::span<float> parameter, std::span<const float> gradient, std::span<float* const> states,
              bool decay) const override {
    run_adam(parameter.data(), gradient.data(), states[0], states[1], static_cast<std::int64_t>(parameter.size()),
             decay ? decayed_ : plain_);
  }

 private:
  OptimizerOptions options_;
  AdamScalars decayed_{}, plain_{};
};

}  // namespace

SgdScalars sgd_scalars(const OptimizerOptions& options, const UpdateScalars& step, bool decay) {
  return {static_cast<float>(step.learning_rate), static_cast<float>(options.momentum),
          decay ? static_cast<float>(options.weight_decay) : 0.0F, options.nesterov};
}

namespace {

/// 1 - beta^t; the difference itself would lose digits where beta is near 1.
double one_minus_power(double beta, double t) {
  return beta > 0 ? -std::expm1(t * std::log(beta)) : 1.0;
}

}  // namespace

AdamScalars adam_scalars(const OptimizerOptions& options, const UpdateScalars& step, bool decay) {
  const bool decoupled = options.kind == "adamw";
  const auto t = static_cast<double>(step.update + 1);
  const double weight_decay = decay ? options.weight_decay : 0.0;
  AdamScalars scalars{};
  scalars.one_minus_beta1 = static_cast<float>(1 - options.beta1);
  scalars.one_minus_beta2 = static_cast<float>(1 - options.beta2);
  scalars.epsilon = static_cast<float>(options.epsilon);
  scalars.first_correction = static_cast<float>(1 / one_minus_power(options.beta1, t));
  scalars.second_correction = static_cast<float>(1 / std::sqrt(one_minus_power(options.beta2, t)));
  scalars.rate = static_cast<float>(step.learning_rate);
  scalars.coupled_decay = decoupled ? 0.0F : static_cast<float>(weight_decay);
  scalars.keep = decoupled ? static_cast<float>(1 - step.learning_rate * weight_decay) : 1.0F;
  return scalars;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options) {
  if (options.kind == "sgd") return std::make_unique<Sgd>(options);
  if (options.kind == "adam" || options.kind == "adamw") return std::make_unique<Adam>(options);
  throw Error(ExitCode::configuration, "job.optimizer: expected sgd, adam or adamw, found '" + options.kind + "'");
}

}  // namespace lockstep::optim
