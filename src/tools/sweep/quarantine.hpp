// What the early failure of a trial means: a mistake of the trial, a fault of the place where it was trained, or an
// outage of what all trials need; and which places get trials. Pure: hands out numbers, reads no clock.
//
// A place is a host, or a slot with a GPU of its own. Where there are several, a trial that fails early is tried on
// another one, and the first place gets none for a while. Failing alike on both, it is the trial's failure. But where
// trials of this sweep have trained before, missing data may be an outage: the trial is tried again for some minutes,
// unless others train meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "launch/restart_policy.hpp"
#include "tools/sweep/study.hpp"

namespace lockstep::sweep {

class Quarantine {
 public:
  /// `again_seconds`: until a place gets a trial again; twice as long with each further failure. `has_trained`: a trial
  /// of the sweep has come to a result. `seed`: of delays.
  Quarantine(double again_seconds, bool has_trained, std::uint64_t seed);

  enum class Meaning {
    trial,   ///< its own failure
    place,   ///< the place's: it is in quarantine, and the trial is to be tried elsewhere
    outage,  ///< everybody's: the trial is tried again, later
  };
  struct Attempt {
    std::string place;
    int code = 0;        ///< exit code
    double seconds = 0;  ///< for which it ran
  };
  /// An attempt of `trial`, which does not know of it yet, has failed. `there`: the places that can be used at all.
  [[nodiscard]] Meaning failed(const Trial& trial, const Attempt& attempt, const std::set<std::string>& there,
                               double now);
  /// A trial has come to a result.
  void trained(int trial, const std::string& place, double now);

  /// Whether the trial may be started there. `busy`: places that train something now.
  bool admits(const Trial& trial, const std::string& place, const std::set<std::string>& there,
              const std::set<std::string>& busy, double now) const;
  /// Whether new trials are to wait until those that wait for the end of an outage have been tried.
  bool holds_back(double now) const;
  /// Seconds until the place gets a trial again.
  double left(const std::string& place, double now) const;

 private:
  struct Fault {
    int times = 0;
    double until = 0;
    int trial = 0;  ///< the last one that failed
  };
  struct Outage {
    double since = 0, until = 0;
    launch::RestartPolicy policy;
  };
  bool is_open(const std::string& place, const std::set<std::string>& there, double now) const;
  [[nodiscard]] bool passes(int trial, double now);

  double again_seconds_;
  bool has_trained_;
  std::uint64_t seed_;
  double trained_at_ = -1;
  std::map<std::string, Fault> faults_;
  std::map<int, Outage> outages_;  ///< by trial
};

}  // namespace lockstep::sweep
