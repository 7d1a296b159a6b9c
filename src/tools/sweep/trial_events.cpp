#include "tools/sweep/trial_events.hpp"

#include <fstream>
#include <sstream>
#include <variant>

#include "observe/telemetry/event_json.hpp"

namespace lockstep::sweep {

namespace {

TrialData data_of(const events::Start& start) {
  TrialData data{start.data_sha256.value_or(""), {}};
  std::istringstream lines(start.sources.value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const auto gap = line.find("  ");
    if (gap != std::string::npos) data.sources[line.substr(gap + 2)] = line.substr(0, gap);
  }
  return data;
}

}  // namespace

void TrialEvents::read() {
  std::ifstream file(path_, std::ios::binary);
  file.seekg(offset_);
  for (std::string line; std::getline(file, line) && !file.eof();) {  // a line without its end is read later
    offset_ += static_cast<std::int64_t>(line.size()) + 1;
    const auto read = telemetry::read_event(line);
    if (!read.event) continue;
    if (const auto* start = std::get_if<events::Start>(&*read.event)) {
      steps_ = start->steps;
      data_ = data_of(*start);
      end_.reset();
    } else if (const auto* step = std::get_if<events::Step>(&*read.event)) {
      step_ = step->step;
    } else if (const auto* evaluation = std::get_if<events::Evaluation>(&*read.event)) {
      evaluations_[evaluation->step] = *evaluation;
    } else if (const auto* end = std::get_if<events::End>(&*read.event)) {
      end_ = *end;
    }
  }
}

std::optional<double> value_in(const events::Evaluation& evaluation, const std::string& metric) {
  if (metric == "loss") return evaluation.loss;
  const auto found = evaluation.metrics.find(metric);
  return found == evaluation.metrics.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace lockstep::sweep
