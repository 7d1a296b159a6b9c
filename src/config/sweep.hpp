// The sweep file: a search over the settings of a job, `sweep:` beside `job:` in one file, or with `sweep.job: PATH`.
// Read by rules as job files are; mistakes are thrown together, as one Problems.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"

namespace lockstep {

/// How the settings of trials are chosen.
enum class SearchMethod : std::uint8_t { grid, random, halving, tpe, population };
template <>
inline constexpr std::array<std::string_view, 5> kNames<SearchMethod>{"grid", "random", "halving", "tpe", "population"};

/// What a parameter's values are drawn from.
enum class Distribution : std::uint8_t { choice, uniform, log_uniform, integers };
template <>
inline constexpr std::array<std::string_view, 4> kNames<Distribution>{"choice", "uniform", "log_uniform", "integers"};

enum class Direction : std::uint8_t { automatic, minimize, maximize };
template <>
inline constexpr std::array<std::string_view, 3> kNames<Direction>{"auto", "minimize", "maximize"};

/// A parameter is drawn only if an earlier one has one of these values.
struct SweepCondition {
  std::string parameter;
  std::vector<std::string> values;  ///< as JSON
};

struct SweepParameter {
  std::string path;  ///< as overrides write it: "optimizer.sgd.momentum"
  Distribution distribution = Distribution::choice;
  std::vector<std::string> choices;  ///< as JSON
  double low = 0, high = 0;          ///< both may be drawn
  std::int64_t step = 1;             ///< integers: low, low + step, ...
  std::int64_t points = 0;           ///< uniform, log_uniform: values of a grid; 0: not for a grid
  std::vector<SweepCondition> when;  ///< all must hold
  Place place;
};

/// 0: no limit. When one is reached, no more trials begin.
struct SweepBudget {
  std::int64_t trials = 0;
  std::int64_t steps = 0;     ///< over all trials
  double device_seconds = 0;  ///< over all trials: seconds times ranks
};

struct HalvingOptions {
  std::int64_t min_steps = 0;  ///< of the first rung
  std::int64_t reduction = 3;  ///< of trials from rung to rung, and growth of their steps
};

struct PopulationOptions {
  std::int64_t members = 0;  ///< trained at the same time
  std::int64_t every = 0;    ///< steps of a generation
  double fraction = 0.2;     ///< of the members that is replaced by copies of as many of the best
  double resample = 0.25;    ///< probability that a copy's setting is drawn anew
  double perturb = 0.2;      ///< else numbers are multiplied by 1 - perturb or 1 + perturb
};

struct SweepOptions {
  std::string name;       ///< the file's by default
  std::string directory;  ///< sweeps/<name> by default
  std::string job;        ///< a job file; empty: the job in the sweep file
  SearchMethod method = SearchMethod::random;
  HalvingOptions halving;
  PopulationOptions population;
  std::string metric;
  Direction direction = Direction::automatic;
  SweepBudget budget;
  std::uint64_t seed = 1;
  std::vector<SweepParameter> parameters;
  std::int64_t job_steps = 0;  ///< of the job, which is read later; 0: it counts epochs
  bool ensemble = false;       ///< trials are the members of an ensemble: all are kept, and none may be missing

  /// Steps after which trials are compared, other than at their end; 0: never.
  std::int64_t compared_every() const {
    if (method == SearchMethod::population) return population.every;
    return method == SearchMethod::halving ? halving.min_steps : 0;
  }
  /// What messages call the whole and its parts.
  const char* whole() const { return ensemble ? "ensemble" : "sweep"; }
  const char* part() const { return ensemble ? "member" : "trial"; }
};

}  // namespace lockstep

namespace lockstep::config {

/// A sweep file, and the text of its job, from which trials are loaded with `load_text(job_text, job_file, ...)`.
struct SweepFile : SweepOptions {
  std::string file, job_file, job_text;
  std::vector<std::string> overrides;  ///< of the job, for all trials
  std::string canonical;               ///< the sweep as JSON with every default, without its name, directory and budget
};

/// Reads a sweep file and checks it against its job. `overrides` are of the job. Throws Problems.
[[nodiscard]] SweepFile load_sweep(const std::string& path, const std::vector<std::string>& overrides,
                                   const Catalogue& catalogue, bool need_data);

/// Parameters that change what the loss is, where the sweep judges trials by it.
[[nodiscard]] std::vector<Problem> incomparable_losses(const SweepFile& sweep);

/// A warning for each parameter that gives trials other samples to be validated on, of which their ranks then depend.
/// `job`: of the sweep, without the settings of a trial.
[[nodiscard]] std::vector<std::string> other_validation_samples(const SweepFile& sweep, const JobFile& job);

/// How the members of an ensemble differ.
enum class MembersBy : std::uint8_t { seed, bootstrap, jobs };

/// The ensemble of one job, whose members differ by their seed (and, with `bootstrap`, by the samples that they draw by
/// it), or of listed jobs, as a grid of one parameter: `seed`, or `job`, which load_member() takes. All members hold
/// out the same samples for validation. `jobs`: their paths; one, unless `by` is `jobs`; empty: the embedded digits.
/// Throws Problems.
[[nodiscard]] SweepFile make_ensemble(const std::vector<std::string>& jobs, const std::vector<std::string>& overrides,
                                      MembersBy by, std::int64_t members, const Catalogue& catalogue);

/// As load_trial(), for a member.
[[nodiscard]] JobFile load_member(const SweepFile& ensemble, const std::vector<std::string>& settings,
                                  const Catalogue& catalogue, bool need_data = true);

/// The job of a trial: the sweep's job with these overrides ("learning_rate=0.1") in addition. Throws Problems; one in
/// a parameter's value is reported at the parameter's place in the sweep file.
[[nodiscard]] JobFile load_trial(const SweepFile& sweep, const std::vector<std::string>& settings,
                                 const Catalogue& catalogue, bool need_data);

}  // namespace lockstep::config
