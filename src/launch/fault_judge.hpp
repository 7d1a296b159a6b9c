// Who is to blame for a failed attempt: the job, some of its hosts, or chance. Pure.
//
// The job is to blame where the same command would fail on any host. What held while steps were trained cannot be the
// job's mistake: missing data or a directory that cannot be used are then the fault of a host that has not trained yet,
// or pass. Before the first step, an error that only some hosts have is theirs, until others have it alike.
#pragma once

#include <set>
#include <string>

namespace lockstep::launch {

struct FailedAttempt {
  int code = 1;                          ///< of the first error
  std::set<std::string> hosts;           ///< of the attempt
  std::set<std::string> reporting = {};  ///< hosts whose ranks had this error
  std::set<std::string> unfit = {};      ///< hosts that ranks have found unfit
};

enum class Blame {
  job,      ///< final
  hosts,    ///< leave them out
  passing,  ///< the machines or their storage: try again for a while
  crash,    ///< a rank or mpirun died or hung, which may be anybody's fault: try again some times
};

struct Verdict {
  Blame blame = Blame::crash;
  std::set<std::string> hosts = {};  ///< to leave out
};

class FaultJudge {
 public:
  /// `has_trained`: an earlier launch of this run has done a step.
  explicit FaultJudge(bool has_trained = false) : has_trained_(has_trained) {}
  /// These hosts have done a step together.
  void trained(const std::set<std::string>& hosts);
  /// `reported`: a rank has reported an error, with its code; else a process died or hung.
  [[nodiscard]] Verdict judge(const FailedAttempt& failed, bool reported);

 private:
  bool has_trained_;
  std::set<std::string> fit_;     ///< have done a step in this launch
  int blamed_code_ = 0;           ///< for which hosts were left out only because no other reported it
  std::set<std::string> blamed_;  ///< these
};

}  // namespace lockstep::launch
