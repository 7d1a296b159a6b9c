// One attempt: mpirun from its start until all of its processes are gone, monitored through the control sockets.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/spans.hpp"
#include "launch/child.hpp"
#include "launch/mpirun.hpp"
#include "launch/open_mpi_words.hpp"
#include "launch/rank_monitor.hpp"

namespace lockstep::launch {

struct AttemptOptions {
  MpirunOptions mpirun;
  std::vector<std::string> command;  ///< that each rank runs
  std::string folder;                ///< for its logs and dumps; must exist
  std::string token;                 ///< of the control socket; ranks of other hosts have taken it
  HangLimits limits;
  Listening listening = listening_on_loopback();  ///< of the control socket
};

class Attempt {
 public:
  /// `on_event` gets the event lines of rank 0.
  Attempt(AttemptOptions options, std::function<void(const std::string&)> on_event);
  /// `request` is called several times a second; `wake` is a descriptor that becomes readable when it should be called.
  /// When run() returns, no process is left on this machine.
  AttemptOutcome run(const std::function<Request()>& request, int wake);

 private:
  std::optional<AttemptOutcome> look();
  std::optional<AttemptOutcome> mpirun_ended();
  void end_processes(bool at_once);
  std::optional<OpenMpiWords::Death> death_at_start(const OpenMpiWords& words);
  void explain_death(AttemptOutcome& outcome);

  AttemptOptions options_;
  RankMonitor ranks_;
  Child mpirun_;
  std::optional<Clock::time_point> ended_at_;
  std::int64_t memory_kills_;  ///< of the cgroup, before this attempt
};

}  // namespace lockstep::launch
