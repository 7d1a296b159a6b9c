// Which steps events.jsonl and TensorBoard keep, so that they stay small in a run of months. A step's number alone
// decides: so it is the same after a resume and on any ranks, and the files only grow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "lockstep/attributes.hpp"
#include "lockstep/events.hpp"

namespace lockstep::telemetry {

/// Of the numbers from 1 on: all up to `dense`, then every second one up to twice that, every fourth one up to four
/// times that, and so on.
[[nodiscard]] bool is_kept(std::int64_t number, std::int64_t dense);

/// Those that `telemetry.every` of the job names, else is_kept() of 32,768. Besides, each whose update was skipped.
class KeptSteps {
 public:
  explicit KeptSteps(std::optional<Span> every = {}) : every_(every) {}
  /// How many steps an epoch has.
  void start(const events::Start& start);
  bool has(const events::Step& step) const;

 private:
  std::optional<Span> every_;
  std::int64_t period_ = 1;
};

/// What events.jsonl gets. Beside any event but evaluations and checkpoints, of which there may be as many as steps,
/// two more steps are kept, the last one before and the first one after it: how far the run had come then.
class ThinnedLines {
 public:
  explicit ThinnedLines(std::optional<Span> every) : kept_(every) {}
  /// The lines to write now: `line`, which is the event's, perhaps with a step's before it; or none.
  [[nodiscard]] std::string next(const events::Event& event, std::string line);
  /// At the end: the last step, if it is not written.
  [[nodiscard]] std::string rest() { return std::exchange(left_out_, {}); }

 private:
  KeptSteps kept_;
  std::string left_out_;   ///< the newest step's line; empty: it is written
  bool is_after_ = false;  ///< the next step is the first one after another event
};

}  // namespace lockstep::telemetry
