#include "tools/sweep/quarantine.hpp"

#include <algorithm>
#include <cmath>

#include "core/unfit_hosts.hpp"
#include "lockstep/error.hpp"

namespace lockstep::sweep {

namespace {

constexpr double kEarlySeconds = 60;    ///< what fails later has trained
constexpr double kOutageSeconds = 300;  ///< for which a trial is tried again
constexpr double kLongestQuarantine = 3600;

bool is(int code, ExitCode which) {
  return code == static_cast<int>(which);
}

bool may_be_the_places(int code) {
  return is(code, ExitCode::infrastructure) || is(code, ExitCode::data) || is(code, ExitCode::cannot_create) ||
         is(code, ExitCode::configuration) || is(code, ExitCode::unfit_host);
}

bool has_another(const std::set<std::string>& there, const std::string& place) {
  return there.size() > there.count(place);
}

}  // namespace

Quarantine::Quarantine(double again_seconds, bool has_trained, std::uint64_t seed)
    : again_seconds_(again_seconds), has_trained_(has_trained), seed_(seed) {}

Quarantine::Meaning Quarantine::failed(const Trial& trial, const Attempt& attempt, const std::set<std::string>& there,
                                       double now) {
  if (!may_be_the_places(attempt.code) || attempt.seconds > kEarlySeconds) return Meaning::trial;
  const auto is_alike = [&](const auto& entry) { return entry.first != attempt.place && entry.second == attempt.code; };
  const bool alike = std::any_of(trial.failed_on.begin(), trial.failed_on.end(), is_alike);
  if (has_another(there, attempt.place) && !alike) {
    Fault& fault = faults_[attempt.place];
    fault.until = now + std::min(std::ldexp(again_seconds_, fault.times++), kLongestQuarantine);
    fault.trial = trial.number;
    return Meaning::place;
  }
  // The places where it failed before are not to blame.
  std::erase_if(faults_, [&](const auto& entry) { return entry.second.trial == trial.number; });
  return !is(attempt.code, ExitCode::configuration) && passes(trial.number, now) ? Meaning::outage : Meaning::trial;
}

bool Quarantine::passes(int trial, double now) {
  if (!has_trained_) return false;
  const auto found = outages_.try_emplace(trial, Outage{now, now, {{1, kOutageSeconds}, seed_ + trial}}).first;
  Outage& outage = found->second;
  const auto decision = outage.policy.failed(-1, now, true);
  outage.until = now + decision.after_seconds;
  if (decision.again && trained_at_ <= outage.since) return true;
  outages_.erase(found);
  return false;
}

void Quarantine::trained(int trial, const std::string& place, double now) {
  has_trained_ = true;
  trained_at_ = now;
  faults_.erase(place);
  outages_.erase(trial);
}

bool Quarantine::is_open(const std::string& place, const std::set<std::string>& there, double now) const {
  const auto waits = [&](const std::string& which) { return left(which, now) > 0; };
  return !waits(place) || std::all_of(there.begin(), there.end(), waits);
}

bool Quarantine::admits(const Trial& trial, const std::string& place, const std::set<std::string>& there,
                        const std::set<std::string>& busy, double now) const {
  if (const auto outage = outages_.find(trial.number); outage != outages_.end() && outage->second.until > now) {
    return false;
  }
  const auto failed_there = [&](const std::string& which) { return trial.failed_on.contains(which); };
  if (failed_there(place) && !std::all_of(there.begin(), there.end(), failed_there)) return false;
  if (!is_open(place, there, now)) return false;
  return !faults_.contains(place) || !busy.contains(place);  // one trial, until it has trained
}

bool Quarantine::holds_back(double now) const {
  return std::count_if(outages_.begin(), outages_.end(), [&](const auto& entry) { return entry.second.until > now; }) >
         1;
}

double Quarantine::left(const std::string& place, double now) const {
  const auto fault = faults_.find(place);
  return fault == faults_.end() ? 0 : std::max(0.0, fault->second.until - now);
}

}  // namespace lockstep::sweep
