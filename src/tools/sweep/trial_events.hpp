// What a trial has reported: its events.jsonl, read as it grows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "lockstep/events.hpp"
#include "tools/sweep/study.hpp"

namespace lockstep::sweep {

class TrialEvents {
 public:
  explicit TrialEvents(std::string run_directory) : path_(std::move(run_directory) + "/events.jsonl") {}
  /// Reads what is new.
  void read();

  std::int64_t step() const { return step_; }
  std::int64_t steps() const { return steps_; }  ///< of the whole job; 0: not known yet
  const TrialData& data() const { return data_; }
  /// Of the validation set, by step.
  const std::map<std::int64_t, events::Evaluation>& evaluations() const { return evaluations_; }
  const std::optional<events::End>& end() const { return end_; }  ///< of the newest start

 private:
  std::string path_;
  TrialData data_;
  std::int64_t offset_ = 0;
  std::int64_t step_ = 0, steps_ = 0;
  std::map<std::int64_t, events::Evaluation> evaluations_;
  std::optional<events::End> end_;
};

/// The loss, or one of the job's metrics; nullopt if the evaluation does not have it.
[[nodiscard]] std::optional<double> value_in(const events::Evaluation& evaluation, const std::string& metric);

}  // namespace lockstep::sweep
