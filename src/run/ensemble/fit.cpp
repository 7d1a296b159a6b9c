#include "run/ensemble/fit.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "lockstep/error.hpp"

namespace lockstep::ensemble {

namespace {

constexpr double kStill = 1e-9;
constexpr int kExpectations = 10'000, kDescents = 100'000;
constexpr double kLeastLikelihood = 1e-300;  // a target that no member thinks possible says nothing of the weights

using Columns = std::vector<std::vector<double>>;

double change(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::fabs(a[i] - b[i]));
  return most;
}

/// By member: the probability that it gave to each target.
Columns likelihoods(Meaning meaning, const std::vector<Table>& members, const Targets& targets) {
  Columns columns;
  for (const Table& member : members) {
    auto& of_member = columns.emplace_back();
    if (meaning == Meaning::classes) {
      for (std::size_t i = 0; i < member.samples(); ++i) {
        const std::size_t target = targets.classes.at(i);  // a negative one is very large
        of_member.push_back(target < member.width ? member.row(i)[target] : 0);
      }
    } else {
      for (std::size_t i = 0; i < member.values.size(); ++i) {
        const double p = member.values[i], t = targets.values.at(i);
        of_member.push_back(t * p + (1 - t) * (1 - p));
      }
    }
  }
  return columns;
}

}  // namespace

std::vector<double> fit_likelihood(Meaning meaning, const std::vector<Table>& members, const Targets& targets) {
  const Columns p = likelihoods(meaning, members, targets);
  std::vector<double> weights = equal_weights(members.size());
  for (int round = 0; round < kExpectations; ++round) {
    std::vector<double> next(weights.size());
    double counted = 0;
    for (std::size_t i = 0; i < p[0].size(); ++i) {
      double sum = 0;
      for (std::size_t m = 0; m < weights.size(); ++m) sum += weights[m] * p[m][i];
      if (sum < kLeastLikelihood) continue;
      counted += 1;
      for (std::size_t m = 0; m < weights.size(); ++m) next[m] += weights[m] * p[m][i] / sum;
    }
    if (counted == 0) return weights;
    for (double& weight : next) weight /= counted;
    const double moved = change(weights, next);
    weights = std::move(next);
    if (moved <= kStill) break;
  }
  return weights;
}

std::vector<double> onto_simplex(std::vector<double> point) {
  std::vector<double> sorted = point;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  double sum = 0, shift = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    sum += sorted[i];
    const double candidate = (sum - 1) / (i + 1);
    if (sorted[i] > candidate) shift = candidate;
  }
  for (double& value : point) value = std::max(value - shift, 0.0);
  return point;
}

std::vector<double> fit_squared_error(const std::vector<Table>& members, const Targets& targets) {
  const std::size_t count = members.size();
  std::vector<double> factors(members[0].width, 1);  // of squared errors
  for (std::size_t k = 0; k < targets.units.size(); ++k) factors.at(k) = 1 / (targets.units[k] * targets.units[k]);
  // With weights that add up to 1, the error is sum_m w_m e_m of the members' errors e_m: a quadratic form in w.
  std::vector<double> products(count * count);
  double trace = 0;
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count; ++b) {
      double sum = 0;
      for (std::size_t i = 0; i < targets.values.size(); ++i) {
        sum += factors[i % factors.size()] * (members[a].values.at(i) - targets.values[i]) *
               (members[b].values.at(i) - targets.values[i]);
      }
      products[a * count + b] = sum;
    }
    trace += products[a * count + a];
  }
  std::vector<double> weights = equal_weights(count);
  for (int round = 0; round < kDescents && trace > 0; ++round) {
    std::vector<double> next = weights;
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = 0; b < count; ++b) next[a] -= products[a * count + b] * weights[b] / trace;
    }
    next = onto_simplex(std::move(next));
    const double moved = change(weights, next);
    weights = std::move(next);
    if (moved <= kStill) break;
  }
  return weights;
}

}  // namespace lockstep::ensemble
