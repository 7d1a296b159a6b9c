#include "train/optimizer.hpp"

#include <cmath>

#include "core/vectorize.hpp"
#include "lockstep/error.hpp"
#include "train/optimizer_formulas.hpp"

namespace lockstep::train {

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
  void begin_step(const UpdateScalars& scalars) override { rate_ = static_cast<float>(scalars.learning_rate); }
  void update(std::span<float> parameter, std::span<const float> gradient, std::span<float* const> states,
              bool decay) const override {
    const SgdScalars scalars{rate_, static_cast<float>(options_.momentum),
                             decay ? static_cast<float>(options_.weight_decay) : 0.0F, options_.nesterov};
    const auto n = static_cast<std::int64_t>(parameter.size());
    if (states.empty()) {
      run_sgd_plain(parameter.data(), gradient.data(), n, scalars);
    } else {
      run_sgd_momentum(parameter.data(), gradient.data(), states[0], n, scalars);
    }
  }

 private:
  OptimizerOptions options_;
  float rate_ = 0;
};

LOCKSTEP_VECTORIZED void run_adam(float* p, const float* g, float* m, float* v, std::int64_t n, AdamScalars s) {
  for (std::int64_t i = 0; i < n; ++i) adam(p[i], g[i], m[i], v[i], s);
}

class Adam final : public Optimizer {
 public:
  Adam(const OptimizerOptions& options, bool decoupled) : options_(options), decoupled_(decoupled) {}
  [[nodiscard]] std::vector<std::string> state_names() const override { return {"first_moment", "second_moment"}; }
  void begin_step(const UpdateScalars& scalars) override {
    const auto t = static_cast<double>(scalars.step + 1);
    scalars_.beta1 = static_cast<float>(options_.beta1);
    scalars_.beta2 = static_cast<float>(options_.beta2);
    scalars_.epsilon = static_cast<float>(options_.epsilon);
    scalars_.first_correction = static_cast<float>(1 / (1 - std::pow(options_.beta1, t)));
    scalars_.second_correction = static_cast<float>(1 / std::sqrt(1 - std::pow(options_.beta2, t)));
    scalars_.rate = static_cast<float>(scalars.learning_rate);
  }
  void update(std::span<float> parameter, std::span<const float> gradient, std::span<float* const> states,
              bool decay) const override {
    AdamScalars scalars = scalars_;
    const double weight_decay = decay ? options_.weight_decay : 0.0;
    scalars.coupled_decay = decoupled_ ? 0.0F : static_cast<float>(weight_decay);
    scalars.keep = decoupled_ ? static_cast<float>(1 - static_cast<double>(scalars.rate) * weight_decay) : 1.0F;
    run_adam(parameter.data(), gradient.data(), states[0], states[1], static_cast<std::int64_t>(parameter.size()),
             scalars);
  }

 private:
  OptimizerOptions options_;
  bool decoupled_;
  AdamScalars scalars_{};
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options) {
  if (options.kind == "sgd") return std::make_unique<Sgd>(options);
  if (options.kind == "adam") return std::make_unique<Adam>(options, false);
  if (options.kind == "adamw") return std::make_unique<Adam>(options, true);
  throw Error(ExitCode::configuration, "job.optimizer: expected sgd, adam or adamw, found '" + options.kind + "'");
}

}  // namespace lockstep::train
