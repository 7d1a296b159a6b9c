// sweep: the declarations of a sweep file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "config/advice.hpp"
#include "config/list_rules.hpp"
#include "config/overrides.hpp"
#include "config/scalar_rules.hpp"
#include "config/sections.hpp"
#include "config/sweep_rules.hpp"
#include "core/nearest.hpp"

namespace lockstep::config {
namespace {

void check_range(const SweepParameter& p, const Scope& scope) {
  if (p.low < p.high) return;
  scope.problem("high", fmt::format("expected a number above low, which is {}, found {}", p.low, p.high));
}

Is<SweepParameter> range_section(bool positive) {
  Number low = positive ? number().above(0) : number();
  return Section<SweepParameter>()
      .field("low", &SweepParameter::low, std::move(low), "smallest value")
      .required()
      .field("high", &SweepParameter::high, number(), "largest value")
      .required()
      .field("points", &SweepParameter::points, number().at_least(2).word("none", 0),
             "for a grid: evenly spaced values (log_uniform: on the logarithmic scale), with both ends")
      .called("a map with low and high")
      .check({"low", "high"}, check_range);
}

void check_integers(const SweepParameter& p, const Scope& scope) {
  for (const auto& [key, value] : {std::pair{"low", p.low}, std::pair{"high", p.high}}) {
    if (value != std::floor(value)) scope.problem(key, fmt::format("expected an integer, found {}", value));
  }
  check_range(p, scope);
}

Is<SweepParameter> integers_section() {
  return Section<SweepParameter>()
      .field("low", &SweepParameter::low, number(), "smallest value")
      .required()
      .field("high", &SweepParameter::high, number(), "no value is larger")
      .required()
      .field("step", &SweepParameter::step, number().at_least(1), "from one value to the next")
      .called("a map with low and high")
      .check({"low", "high"}, check_integers);
}

Is<SweepParameter> parameter_section() {
  using P = SweepParameter;
  return Section<P>()
      .placed(&P::place)
      .field("choice", &P::choices, list_of<std::string>(any_value(), {.least = 1, .single = false, .unique = true}),
             "one of these values, of any type")
      .alternative(Distribution::choice, &P::distribution)
      .option(Distribution::uniform, &P::distribution, range_section(false), "a real number")
      .option(Distribution::log_uniform, &P::distribution, range_section(true),
              "a real number whose logarithm is uniform")
      .option(Distribution::integers, &P::distribution, integers_section(), "an integer")
      .field("when", &P::when, conditions(), "only if earlier parameters have these values (one, or a list)")
      .called("a map with one of choice, uniform, log_uniform, integers");
}

Is<SweepBudget> budget_section() {
  return Section<SweepBudget>()
      .field("trials", &SweepBudget::trials, number().at_least(1).word("unlimited", 0), "trials in all")
      .field("steps", &SweepBudget::steps, number().at_least(1).word("unlimited", 0), "steps of all trials together")
      .field("device_seconds", &SweepBudget::device_seconds, number().above(0).word("unlimited", 0),
             "seconds times ranks of all trials; their number then depends on the machine")
      .shorthand("trials");
}

Is<HalvingOptions> halving_section() {
  return Section<HalvingOptions>()
      .field("min_steps", &HalvingOptions::min_steps, number().at_least(1), "steps before trials are first compared")
      .required()
      .field("reduction", &HalvingOptions::reduction, number().at_least(2),
             "one in this many trials continues, for this many times the steps");
}

Is<PopulationOptions> population_section() {
  using P = PopulationOptions;
  return Section<P>()
      .field("members", &P::members, number().at_least(2), "trials trained together")
      .required()
      .field("every", &P::every, number().at_least(1), "steps of a generation")
      .required()
      .field("fraction", &P::fraction, number().above(0).at_most(0.5),
             "of the members, at least one, replaced by copies of the best after each generation")
      .field("resample", &P::resample, number().at_least(0).at_most(1),
             "probability that a copy's setting is drawn anew")
      .field("perturb", &P::perturb, number().at_least(0).below(1),
             "other numbers are multiplied by 1 - perturb or 1 + perturb, within their distribution");
}

Is<SweepOptions> method_section() {
  using Options = SweepOptions;
  return Section<Options>()
      .word(SearchMethod::grid, &Options::method)
      .word(SearchMethod::random, &Options::method)
      .word(SearchMethod::tpe, &Options::method)
      .field("halving", &Options::halving, halving_section(),
             "asynchronous successive halving: the best trials are trained further")
      .alternative(SearchMethod::halving, &Options::method)
      .field("population", &Options::population, population_section(),
             "population based training: copies of the best members, with other settings, replace the worst")
      .alternative(SearchMethod::population, &Options::method)
      .called("grid, random, tpe, or a map with halving or population");
}

/// `when` may name parameters further up only, so that values can be drawn in the order of the file.
void check_conditions(const SweepOptions& sweep, const Scope& scope) {
  std::vector<std::string> above;
  for (const auto& parameter : sweep.parameters) {
    for (const auto& condition : parameter.when) {
      if (std::find(above.begin(), above.end(), condition.parameter) != above.end()) continue;
      at_parameter(scope, parameter, "when", condition.parameter,
                   fmt::format("expected a parameter further up, found '{}'{}", condition.parameter,
                               did_you_mean(condition.parameter, above)));
    }
    above.push_back(parameter.path);
  }
}

void check_choices_of_conditions(const SweepOptions& sweep, const Scope& scope) {
  for (const auto& parameter : sweep.parameters) {
    for (const auto& condition : parameter.when) {
      const auto named = std::find_if(sweep.parameters.begin(), sweep.parameters.end(),
                                      [&](const auto& other) { return other.path == condition.parameter; });
      if (named == sweep.parameters.end() || named->distribution != Distribution::choice) continue;
      for (const auto& value : condition.values) {
        if (std::find(named->choices.begin(), named->choices.end(), value) != named->choices.end()) continue;
        at_parameter(scope, parameter, "when", condition.parameter,
                     fmt::format("expected one of the choices of '{}', found {}", condition.parameter, value));
      }
    }
  }
}

void check_grid(const SweepOptions& sweep, const Scope& scope) {
  if (sweep.method != SearchMethod::grid) return;
  for (const auto& parameter : sweep.parameters) {
    const bool real =
        parameter.distribution == Distribution::uniform || parameter.distribution == Distribution::log_uniform;
    if (!real || parameter.points > 0) continue;
    at_parameter(scope, parameter, std::string(name_of(parameter.distribution)), "",
                 "expected points, the number of values in a grid, found none; set points, or method: random");
  }
}

/// All trials of a halving have the same length, of which the rungs are parts.
void check_halving(const SweepOptions& sweep, const Scope& scope) {
  if (sweep.method != SearchMethod::halving) return;
  for (const auto& parameter : sweep.parameters) {
    for (const auto* key : {"steps", "epochs", "evaluate"}) {
      if (parameter.path != key && !parameter.path.starts_with(std::string(key) + ".")) continue;
      at_parameter(scope, parameter, "", "",
                   fmt::format("expected a parameter other than {}, which must be the same in all trials of a halving; "
                               "leave it out",
                               key));
    }
  }
}

/// A copy goes on from the checkpoint of another trial.
void check_population(const SweepOptions& sweep, const Scope& scope) {
  if (sweep.method != SearchMethod::population) return;
  for (const auto& parameter : sweep.parameters) {
    if (can_change_between_steps(parameter.path)) continue;
    at_parameter(scope, parameter, "", "",
                 fmt::format("expected a parameter that can change between two steps of a run ({}), found '{}'; leave "
                             "it out, or choose another method",
                             kChangeableSettings, parameter.path));
  }
}

void check_budget(const SweepOptions& sweep, const Scope& scope) {
  const SweepBudget& budget = sweep.budget;
  if (sweep.method == SearchMethod::population) {
    if (!scope.written("budget")) return;
    return scope.problem("budget",
                         "expected none with a population, which ends when its members have done the job's steps; "
                         "leave it out");
  }
  if (sweep.method == SearchMethod::grid || budget.trials > 0 || budget.steps > 0 || budget.device_seconds > 0) return;
  scope.problem("budget",
                "expected a limit, without which the search has no end, found none; set budget: 20, for 20 "
                "trials");
}

}  // namespace

Is<SweepOptions> sweep_section(const Catalogue& catalogue) {
  using Options = SweepOptions;
  return Section<Options>()
      .field("name", &Options::name, text(), "default: the file's name")
      .field("directory", &Options::directory, text(), "for trials and results; default: sweeps/<name>")
      .field("job", &Options::job, existing_file(), "the job file, if the job is not in this file")
      .field("seed", &Options::seed, number().at_least(0), "of the search; trials have the job's seed")
      .part("method", method_section(), "how settings are chosen")
      .field("metric", &Options::metric, metric_or_loss(catalogue), "judges trials by the last evaluation")
      .required()
      .field("direction", &Options::direction, choice<Direction>(), "auto: as is better for that metric")
      .field("budget", &Options::budget, budget_section(),
             "after which no trial begins; a number: of trials. A grid ends by itself")
      .field("parameters", &Options::parameters, parameters(parameter_section()),
             "paths of the job, as in overrides, and distributions")
      .required()
      .called("a map")
      .check({"parameters"}, check_conditions)
      .check({"parameters"}, check_choices_of_conditions)
      .check({"method", "parameters"}, check_grid)
      .check({"method", "parameters"}, check_halving)
      .check({"method", "parameters"}, check_population)
      .check({"method", "budget"}, check_budget);
}

}  // namespace lockstep::config
