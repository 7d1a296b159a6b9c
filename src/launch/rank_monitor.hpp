// What the supervisor knows about the ranks of an attempt: their connections, heartbeats, errors and exit codes. It
// knows nothing about mpirun.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/ran_time.hpp"
#include "core/spans.hpp"
#include "launch/control_server.hpp"
#include "launch/hang_watch.hpp"
#include "launch/listening.hpp"

namespace lockstep::launch {

/// How an attempt ended.
struct AttemptOutcome {
  enum class Kind {
    ended,   ///< all ranks ended, with `code`: 0 or 75
    failed,  ///< a rank reported an error, or mpirun ended before the ranks connected
    died,    ///< a rank's process is gone without a message
    hung,
    mpirun_died,
    killed,  ///< as requested
  };
  Kind kind = Kind::ended;
  int code = 0;
  int rank = -1;  ///< the rank at fault; -1: none
  std::string host;
  std::int64_t step = -1;  ///< the highest step done
  std::string message;
  std::vector<std::string> states;       ///< after a hang: the current operation of each rank
  std::set<std::string> reporting = {};  ///< after an error: the hosts whose ranks had it
  std::set<std::string> unfit = {};      ///< hosts that the ranks have found unfit
};
/// "rank 1 (host a)"
[[nodiscard]] std::string rank_text(int rank, const std::string& host);
[[nodiscard]] const char* name_of(AttemptOutcome::Kind kind);  ///< "death", "hang", ...

enum class Request { none, yield, stop, kill };  ///< see control_socket.hpp; later values take precedence

inline constexpr std::chrono::milliseconds kTick{50};  ///< longest wait in one iteration of the supervisor's loop
inline constexpr double kErrorSettles = 0.5;           ///< seconds, after which an error counts as the cause

class RankMonitor {
 public:
  /// `on_event` gets the event lines of rank 0. Throws like ControlServer's constructor.
  RankMonitor(const std::string& token, int ranks, const HangLimits& limits, const Listening& where,
              std::function<void(const std::string&)> on_event);

  /// Tells ranks that are still connected that this attempt is over.
  ~RankMonitor() { server_.send_all("over"); }
  RankMonitor(const RankMonitor&) = delete;
  RankMonitor& operator=(const RankMonitor&) = delete;

  const std::string& addresses() const { return server_.addresses(); }

  /// One iteration: waits like ControlServer::poll(), and handles the messages that have arrived.
  void hear(std::chrono::milliseconds patience, int wake);
  /// Sends the request to all ranks, including those that connect later. Ignored after a stronger request.
  void ask(Request request);
  Request asked() const { return asked_; }

  /// An error or a death that a rank is to blame for; until settled(), another one may turn out to be its cause.
  const std::optional<AttemptOutcome>& fault() const { return fault_; }
  bool has_met(int rank) const { return hosts_.contains(rank); }
  bool has_met_all() const { return static_cast<int>(hosts_.size()) == ranks_; }
  bool settled() const { return fault_ && now() >= settled_at_; }
  /// A rank that hangs now. If there is one, asks all ranks for a dump and gives them a moment for it.
  [[nodiscard]] std::optional<AttemptOutcome> find_hang();
  /// The highest exit code, once every rank has sent its own.
  std::optional<int> code_of_all() const;
  bool all_connected() const { return watch_.all_connected(); }
  /// The highest step done by any rank; -1: none.
  std::int64_t step() const { return watch_.step(); }

 private:
  void take(RankMessage message);
  void hello(int rank, std::string rest);
  void error(int rank, int code, const std::string& message);
  void blame(AttemptOutcome::Kind kind, int rank, int code, const std::string& message, double settle);
  void lost(int rank);
  [[nodiscard]] AttemptOutcome hung(const Hang& hang);
  double now() const { return now_; }

  int ranks_;
  HangLimits limits_;
  std::function<void(const std::string&)> on_event_;
  RanTime ran_;
  double now_ = 0;  ///< seconds that this process has run since the start
  ControlServer server_;
  HangWatch watch_;
  Request asked_ = Request::none;
  std::map<int, std::string> hosts_;  ///< by rank
  std::set<std::string> unfit_;
  std::map<int, int> codes_;  ///< of ranks that have ended
  std::optional<AttemptOutcome> fault_;
  double settled_at_ = 0;
};

}  // namespace lockstep::launch
