// Method: decides which trial is trained next. Pure: a function of the study, so a sweep that was killed decides the
// same when its journal has been read, and methods are tested without processes.
#pragma once

#include <memory>
#include <optional>
#include <variant>

#include "tools/sweep/study.hpp"

namespace lockstep::sweep {

/// A new trial, trained until some step; 0: to the job's end.
struct Begin {
  Settings settings;
  std::int64_t until = 0;
  std::optional<Origin> origin = {};  ///< paused there, and not promoted before this trial has begun
};
/// A paused trial is trained further.
struct Promote {
  int trial = 0;
  std::int64_t until = 0;
};
/// Nothing can be decided before a running trial ends.
struct Wait {};
/// There is nothing more to do.
struct Stop {};
using Decision = std::variant<Begin, Promote, Wait, Stop>;

class Method {
 public:
  virtual ~Method() = default;
  /// What a free slot does next. Trials in state `waiting` are being trained, or soon will be.
  virtual Decision ask(const Study& study) const = 0;
};

[[nodiscard]] std::unique_ptr<Method> make_method(const SweepOptions& options);

// One file each in methods/.
[[nodiscard]] std::unique_ptr<Method> make_grid(const SweepOptions& options);
[[nodiscard]] std::unique_ptr<Method> make_random();
[[nodiscard]] std::unique_ptr<Method> make_halving(const SweepOptions& options);
[[nodiscard]] std::unique_ptr<Method> make_tpe();
[[nodiscard]] std::unique_ptr<Method> make_population(const SweepOptions& options);

/// Trial number `trial` of a random search with this sweep's seed.
[[nodiscard]] Settings random_settings(const SweepOptions& options, int trial);

}  // namespace lockstep::sweep
