// What the supervisor knows of the ranks of an attempt: their connections, heartbeats, errors and good-byes. It knows
// nothing of mpirun.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/spans.hpp"
#include "launch/control_server.hpp"
#include "launch/hang_watch.hpp"
#include "launch/listening.hpp"

namespace lockstep::launch {

/// How an attempt ended.
struct Outcome {
  enum class Kind {
    ended,   ///< all ranks, with `code`: 0 or 75
    failed,  ///< a rank said an error, or mpirun ended before the ranks came
    died,    ///< a rank's process is gone without a word
    hung,
    mpirun_died,
    killed,  ///< as was wished
  };
  Kind kind = Kind::ended;
  int code = 0;
  int rank = -1;  ///< whose fault; -1: nobody's
  std::string host;
  std::int64_t step = -1;  ///< the most steps done
  std::string message;
  std::vector<std::string> states;  ///< of a hang: what each rank was in
};
[[nodiscard]] const char* name_of(Outcome::Kind kind);  ///< "death", "hang", ...

enum class Wish { none, yield, stop, kill };  ///< see control_socket.hpp; later ones win

inline constexpr std::chrono::milliseconds kTick{50};  ///< a turn of the supervisor's loop waits no longer
inline constexpr double kErrorSettles = 0.5;           ///< seconds, after which an error has no other cause

class RankMonitor {
 public:
  /// `on_event` gets the lines of rank 0's events. Throws as ControlServer's constructor does.
  RankMonitor(int ranks, const HangLimits& limits, const Listening& where,
              std::function<void(const std::string&)> on_event);

  [[nodiscard]] const std::string& addresses() const { return server_.addresses(); }
  /// A rank proves by it that it is one of this attempt.
  [[nodiscard]] const std::string& secret() const { return secret_; }

  /// One turn: waits as ControlServer::poll() does, and hears what has come.
  void hear(std::chrono::milliseconds patience, int wake);
  /// Tells all ranks, those too that come later. Nothing where a later wish was told before.
  void ask(Wish wish);
  [[nodiscard]] Wish asked() const { return asked_; }

  /// An error or a death that a rank is to blame for; until settled() another may turn out to be its cause.
  [[nodiscard]] const std::optional<Outcome>& fault() const { return fault_; }
  [[nodiscard]] bool settled() const { return fault_ && now() >= settled_at_; }
  /// A rank that stands still now. Asks all ranks for a dump then, and gives them a moment for it.
  [[nodiscard]] std::optional<Outcome> find_hang();
  /// The highest exit code, once every rank has said good-bye.
  [[nodiscard]] std::optional<int> code_of_all() const;
  [[nodiscard]] bool all_connected() const { return watch_.all_connected(); }
  /// The most steps done by any rank; -1: none.
  [[nodiscard]] std::int64_t step() const { return watch_.step(); }

 private:
  void take(RankMessage message);
  void hello(int rank, std::string rest);
  void blame(Outcome::Kind kind, int rank, int code, const std::string& message, double settle);
  void lost(int rank);
  [[nodiscard]] Outcome hung(const Hang& hang);
  [[nodiscard]] double now() const { return seconds_since(start_); }

  int ranks_;
  HangLimits limits_;
  std::function<void(const std::string&)> on_event_;
  Clock::time_point start_ = Clock::now();
  std::string secret_;
  ControlServer server_;
  HangWatch watch_;
  Wish asked_ = Wish::none;
  std::map<int, std::string> hosts_;  ///< by rank
  std::map<int, int> codes_;          ///< of ranks that said good-bye
  std::optional<Outcome> fault_;
  double settled_at_ = 0;
};

}  // namespace lockstep::launch
