// A rank's end of the control socket: a thread sends heartbeats with the rank's step and current operation, forwards
// events and errors, and receives the supervisor's stop requests.
//
// If the supervisor is gone, nothing would restart the process or clean up after it: it is asked to stop, as by the
// supervisor, so it finishes the step and writes a checkpoint, if the run directory is still this launch's. It ends
// immediately if no rank makes progress any more, if the supervisor has ended the attempt, and if the supervisor has
// been silent for the hang limit: then the supervisor has given up on this rank, and another attempt may already be
// writing to the run directory.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/flight_recorder.hpp"
#include "core/spans.hpp"
#include "launch/control_socket.hpp"
#include "lockstep/events.hpp"
#include "lockstep/run_watcher.hpp"

namespace lockstep::launch {

class RankAgent final : public RunWatcher {
 public:
  /// Null if no supervisor started this process. Else both output streams go to this rank's log file, and the
  /// supervisor is told about the process. Throws Error(infrastructure) if it cannot be reached.
  [[nodiscard]] static std::unique_ptr<RankAgent> from_environment();
  ~RankAgent() override;
  RankAgent(const RankAgent&) = delete;
  RankAgent& operator=(const RankAgent&) = delete;

  /// From now on heartbeats report the recorder's newest operation; a dump goes to the launch's folder.
  void watch(std::shared_ptr<FlightRecorder> recorder);
  void step_done(std::int64_t step) override;
  StopRequest stop_request() const override { return stop_request_.load(); }
  std::string launch() const override;
  /// Forwards the run's events to the supervisor; for rank 0. Must not outlive the agent.
  [[nodiscard]] std::unique_ptr<events::Sink> make_sink();
  /// Dumps the recorder, reports the error to the supervisor, and waits a while for it to end all ranks.
  void fail(const std::exception& error);
  /// The last message before the process ends.
  void leave(int code);

 private:
  RankAgent(ControlSocket socket, int rank, std::string dumps, std::string token);
  class EventSink;
  void say(const std::string& line);
  void run();
  void serve(const std::string& line);
  void send_beat();
  void lose_supervisor();
  std::uint64_t progress() const;
  void dump();
  std::int64_t median_milliseconds() const;
  [[noreturn]] void give_up(const char* why) const;

  ControlSocket socket_;  ///< used by the thread only
  int rank_, wake_;
  std::string dumps_, token_;
  std::atomic<StopRequest> stop_request_{StopRequest::none};
  std::atomic<std::int64_t> step_{-1};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> to_say_;
  std::vector<double> durations_;  ///< of the latest steps, a ring
  std::size_t durations_count_ = 0;
  Clock::time_point step_ended_;
  std::shared_ptr<FlightRecorder> recorder_;
  bool stop_ = false, said_all_ = false;
  bool greeted_ = false, over_ = false;            ///< used by the thread only
  std::atomic<bool> alone_{false};                 ///< the supervisor is gone
  double limit_ = 60, period_ = 0.5, silent_ = 0;  ///< seconds; used by the thread only
  std::thread thread_;
};

/// Environment variables that the supervisor sets for every rank.
inline constexpr const char* kSupervisorVariable = "LOCKSTEP_SUPERVISOR";  ///< addresses
inline constexpr const char* kFolderVariable = "LOCKSTEP_LAUNCH_LOGS";     ///< of this attempt's logs and dumps
inline constexpr const char* kRestartsVariable = "LOCKSTEP_RESTARTS";      ///< so far, by reason: "death=1,hang=2"

/// The value of kRestartsVariable.
[[nodiscard]] std::map<std::string, double> restarts_of_launch();

}  // namespace lockstep::launch
