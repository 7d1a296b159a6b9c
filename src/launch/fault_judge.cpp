#include "launch/fault_judge.hpp"

#include <algorithm>

#include "core/unfit_hosts.hpp"
#include "launch/restart_policy.hpp"
#include "lockstep/error.hpp"

namespace lockstep::launch {

namespace {

bool is(int code, ExitCode which) {
  return code == static_cast<int>(which);
}

/// Codes that a host may be to blame for: the file or directory may be missing on it alone.
bool may_be_the_hosts(int code) {
  return is(code, ExitCode::unfit_host) || is(code, ExitCode::data) || is(code, ExitCode::other_data) ||
         is(code, ExitCode::cannot_create) || is(code, ExitCode::configuration);
}

std::set<std::string> without(const std::set<std::string>& hosts, const std::set<std::string>& others) {
  std::set<std::string> rest;
  std::set_difference(hosts.begin(), hosts.end(), others.begin(), others.end(), std::inserter(rest, rest.end()));
  return rest;
}

}  // namespace

void FaultJudge::trained(const std::set<std::string>& hosts) {
  has_trained_ = true;
  fit_.insert(hosts.begin(), hosts.end());
  blamed_code_ = 0;
  blamed_.clear();
}

Verdict FaultJudge::judge(const FailedAttempt& failed, bool reported) {
  if (!may_be_the_hosts(failed.code)) {
    if (is_permanent(failed.code)) return {Blame::job};
    return {reported ? Blame::passing : Blame::crash};
  }
  std::set<std::string> suspects = failed.unfit;
  if (suspects.empty() && is(failed.code, ExitCode::unfit_host)) suspects = failed.reporting;
  if (suspects.empty() && !fit_.empty()) suspects = without(failed.hosts, fit_);
  if (suspects.empty() && fit_.empty()) {
    const bool alike = blamed_code_ == failed.code && !without(failed.reporting, blamed_).empty();
    if (!alike) suspects = failed.reporting;
    blamed_code_ = failed.code;
    blamed_.insert(failed.reporting.begin(), failed.reporting.end());
  }
  if (!suspects.empty() && !without(failed.hosts, suspects).empty()) return {Blame::hosts, suspects};
  return {has_trained_ ? Blame::passing : Blame::job};
}

}  // namespace lockstep::launch
