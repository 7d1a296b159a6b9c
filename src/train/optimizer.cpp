#include "train/optimizer.hpp"

#include <cmath>

#include "core/vectorize.hpp"
#include "lockstep/error.hpp"

namespace lockstep::train {

namespace {

struct SgdScalars {
  float rate, momentum, decay;
  bool nesterov;
};

LOCKSTEP_VECTORIZED void sgd_plain(float* p, const float* g, std::int64_t n, SgdScalars s) {
  for (std::int64_t i = 0; i < n; ++i) p[i] -= s.rate * (g[i] + s.decay * p[i]);
}

LOCKSTEP_VECTORIZED void sgd_momentum(float* p, const float* g, float* m, std::int64_t n, SgdScalars s) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float gradient = g[i] + s.decay * p[i];
    m[i] = s.momentum * m[i] + gradient;
    p[i] -= s.rate * (s.nesterov ? gradient + s.momentum * m[i] : m[i]);
  }
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
      sgd_plain(parameter.data(), gradient.data(), n, scalars);
    } else {
      sgd_momentum(parameter.data(), gradient.data(), states[0], n, scalars);
    }
  }

 private:
  OptimizerOptions options_;
  float rate_ = 0;
};

struct AdamScalars {
  float beta1, beta2, epsilon;
  float first_correction, second_correction;  // 1 / (1 - beta^t), and 1 / sqrt(1 - beta2^t)
  float rate, coupled_decay, keep;            // keep: 1 - rate * decoupled decay
};

LOCKSTEP_VECTORIZED void adam(float* p, const float* g, float* m, float* v, std::int64_t n, AdamScalars s) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float gradient = g[i] + s.coupled_decay * p[i];
    m[i] = s.beta1 * m[i] + (1.0F - s.beta1) * gradient;
    v[i] = s.beta2 * v[i] + (1.0F - s.beta2) * (gradient * gradient);
    const float denominator = std::sqrt(v[i]) * s.second_correction + s.epsilon;
    p[i] = p[i] * s.keep - s.rate * (m[i] * s.first_correction) / denominator;
  }
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
    adam(parameter.data(), gradient.data(), states[0], states[1], static_cast<std::int64_t>(parameter.size()), scalars);
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
