// One trial being trained: `lockstep train` in the trial's run directory, under mpirun if it has several ranks.
//
// The process gets SIGTERM when the sweep dies, writes a checkpoint and ends; it carries the sweep's mark, so that a
// sweep that begins again can wait for it.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/spans.hpp"
#include "launch/child.hpp"
#include "tools/sweep/study.hpp"
#include "tools/sweep/trial_events.hpp"

namespace lockstep::sweep {

struct TrialPlace {
  std::string directory;  ///< the trial's run directory; its job is job.yaml there
  std::string mark;       ///< the sweep's
  int ranks = 1;
  std::string host;                ///< which runs them; empty: this machine
  std::string agent;               ///< that starts them there
  std::string resume;              ///< the checkpoint to go on from; empty: its newest
  std::vector<std::string> words;  ///< overrides that change where it runs and not what it computes
  std::string slice;  ///< of a GPU, the only one that it sees; empty: what its host shows. Of one rank here
};

class TrialProcess {
 public:
  TrialProcess(const Trial& trial, TrialPlace place, std::string metric);

  int trial() const { return trial_; }
  const std::string& directory() const { return place_.directory; }
  std::int64_t until() const { return until_; }
  double seconds() const { return seconds_since(start_); }
  /// Its events so far.
  [[nodiscard]] const TrialEvents& events();
  /// Asks it for a checkpoint and its end; a second time: ends it at once.
  void stop();
  bool is_stopping() const { return stops_ > 0; }

  /// It ended because stop() was called, or its host is stopped, with a checkpoint where it makes any.
  struct Stopped {};
  using Outcome = std::variant<Result, Failure, Stopped>;
  /// nullopt while it runs. A failure's `final` says that another attempt would fail in the same way.
  [[nodiscard]] std::optional<Outcome> poll();

 private:
  [[nodiscard]] Outcome outcome(int code);
  std::string reason(int code) const;
  int trial_;
  std::int64_t until_;
  TrialPlace place_;
  std::string metric_;
  TrialEvents events_;
  Clock::time_point start_;
  int stops_ = 0;
  launch::Child child_;
};

}  // namespace lockstep::sweep
