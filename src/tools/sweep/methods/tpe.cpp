// Tree-structured Parzen estimator: a density l of the good trials' values and one, g, of all others'; of some values
// drawn from l the one with the largest l / g is tried.
// Source: Bergstra et al., "Algorithms for hyper-parameter optimization", NIPS 2011, section 4. Each parameter is
// estimated alone. All densities are over quantiles of the parameter's distribution, from 0 to 1, where the prior is
// uniform.
//
// The paper leaves the numbers open or sets them for its own problems; here they are the defaults of Optuna's
// TPESampler: 10 random trials first, 24 candidates, the best tenth is good (at most 25), and of more than 25 trials
// older ones count less. A failed trial counts as one that is not good: most fail because of their settings, and
// without them the settings where training diverges would look as if nobody had tried them.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tools/sweep/method.hpp"

namespace lockstep::sweep {

namespace {

constexpr int kStartupTrials = 10, kCandidates = 24;
constexpr std::size_t kMostGood = 25, kFullWeights = 25;

double normal_cdf(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0));
}

/// One weight for each observation, in their order in time: the newest 25 count 1, older ones less.
std::vector<double> weights_of(std::size_t count) {
  std::vector<double> weights(count, 1.0);
  for (std::size_t i = 0; i + kFullWeights < count; ++i) {
    weights[i] = std::max(static_cast<double>(i) / (count - kFullWeights), 1 / static_cast<double>(count));
  }
  return weights;
}

/// A mixture of normals, cut to [0, 1]: one around each observation, as wide as the gap to its farther neighbour (0 and
/// 1 are neighbours too), and the prior, a wide one around the middle.
class Numbers {
 public:
  explicit Numbers(std::vector<double> observations)
      : means_(std::move(observations)), weights_(weights_of(means_.size())) {
    means_.push_back(0.5);
    weights_.push_back(1);
    std::vector<std::size_t> order(means_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return means_[a] < means_[b]; });
    const double narrowest = 1 / std::min(100.0, 1 + static_cast<double>(means_.size()));
    widths_.resize(means_.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
      const double mean = means_[order[k]], left = k == 0 ? 0 : means_[order[k - 1]],
                   right = k + 1 == order.size() ? 1 : means_[order[k + 1]];
      widths_[order[k]] = std::clamp(std::max(mean - left, right - mean), narrowest, 1.0);
    }
    widths_.back() = 1;
  }

  double density(double x) const {
    double sum = 0;
    for (std::size_t i = 0; i < means_.size(); ++i) {
      const double z = (x - means_[i]) / widths_[i];
      sum += weights_[i] * std::exp(-z * z / 2) / (widths_[i] * mass(i));
    }
    return sum / total();
  }

  /// `which` and `where`: uniform in [0, 1).
  double draw(double which, double where) const {
    std::size_t i = 0;
    for (double left = which * total(); i + 1 < weights_.size() && left >= weights_[i]; ++i) left -= weights_[i];
    const double wanted = normal_cdf((0 - means_[i]) / widths_[i]) + where * mass(i);
    double low = 0, high = 1;
    for (int step = 0; step < 50; ++step) {
      const double middle = (low + high) / 2;
      (normal_cdf((middle - means_[i]) / widths_[i]) < wanted ? low : high) = middle;
    }
    return low;
  }

 private:
  double mass(std::size_t i) const {
    return normal_cdf((1 - means_[i]) / widths_[i]) - normal_cdf((0 - means_[i]) / widths_[i]);
  }
  double total() const {
    double sum = 0;
    for (const double weight : weights_) sum += weight;
    return sum;
  }
  std::vector<double> means_, weights_, widths_;
};

/// Of a choice: how often each was observed, and the prior, which is 1 for each.
class Choices {
 public:
  Choices(const std::vector<double>& observations, std::size_t count) : weights_(count, 1) {
    const auto weights = weights_of(observations.size());
    for (std::size_t i = 0; i < observations.size(); ++i) weights_[index(observations[i])] += weights[i];
  }
  double density(double quantile) const { return weights_[index(quantile)] / total(); }
  double draw(double which, double /*where*/) const {
    std::size_t i = 0;
    for (double left = which * total(); i + 1 < weights_.size() && left >= weights_[i]; ++i) left -= weights_[i];
    return (i + 0.5) / weights_.size();
  }

 private:
  std::size_t index(double quantile) const {
    return std::min(static_cast<std::size_t>(quantile * weights_.size()), weights_.size() - 1);
  }
  double total() const {
    double sum = 0;
    for (const double weight : weights_) sum += weight;
    return sum;
  }
  std::vector<double> weights_;
};

template <class Density>
double best_candidate(const Density& good, const Density& others, const SweepOptions& options, const std::string& path,
                      std::uint64_t trial) {
  double best = 0, best_ratio = -1;
  for (std::uint32_t i = 0; i < kCandidates; ++i) {
    const double x =
        good.draw(uniform(options.seed, path, trial, 2 * i + 1), uniform(options.seed, path, trial, 2 * i + 2));
    const double ratio = good.density(x) / others.density(x);
    if (ratio > best_ratio) {
      best = x;
      best_ratio = ratio;
    }
  }
  return best;
}

class Tpe : public Method {
 public:
  Decision ask(const Study& study) const override {
    if (!study.may_begin()) return Stop{};
    const int number = study.trials().size();
    std::vector<const Trial*> ranked, failed;
    for (const auto& trial : study.trials()) {
      if (trial.state == TrialState::done) ranked.push_back(&trial);
      if (trial.state == TrialState::failed) failed.push_back(&trial);
    }
    if (ranked.size() < kStartupTrials) return Begin{random_settings(study.options(), number), 0};
    std::stable_sort(ranked.begin(), ranked.end(), [&](const Trial* a, const Trial* b) {
      return study.is_better(a->reports.back().value, b->reports.back().value);
    });
    const std::size_t good = std::min((ranked.size() + 9) / 10, kMostGood);
    ranked.insert(ranked.end(), failed.begin(), failed.end());
    return Begin{draw(study.options().parameters,
                      [&](const SweepParameter& parameter) {
                        return quantile(study.options(), parameter, ranked, good, number);
                      }),
                 0};
  }

 private:
  [[nodiscard]] static double quantile(const SweepOptions& options, const SweepParameter& parameter,
                                       const std::vector<const Trial*>& ranked, std::size_t good, std::uint64_t trial) {
    const auto observed = [&](std::size_t from, std::size_t to) {
      std::vector<const Trial*> in_time(ranked.begin() + from, ranked.begin() + to);
      std::sort(in_time.begin(), in_time.end(), [](const Trial* a, const Trial* b) { return a->number < b->number; });
      std::vector<double> quantiles;
      for (const Trial* one : in_time) {
        const std::string* value = value_of(one->settings, parameter.path);
        const auto found = value == nullptr ? std::nullopt : quantile_of(parameter, *value);
        if (found) quantiles.push_back(*found);
      }
      return quantiles;
    };
    const auto best = observed(0, good), others = observed(good, ranked.size());
    if (parameter.distribution == Distribution::choice) {
      const std::size_t count = parameter.choices.size();
      return best_candidate(Choices(best, count), Choices(others, count), options, parameter.path, trial);
    }
    return best_candidate(Numbers(best), Numbers(others), options, parameter.path, trial);
  }
};

}  // namespace

std::unique_ptr<Method> make_tpe() {
  return std::make_unique<Tpe>();
}

}  // namespace lockstep::sweep
