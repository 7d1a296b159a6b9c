// One attempt: mpirun from its start until nothing of it is left, watched through the control sockets.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/spans.hpp"
#include "launch/child.hpp"
#include "launch/control_server.hpp"
#include "launch/hang_watch.hpp"
#include "launch/mpirun.hpp"

namespace lockstep::launch {

struct AttemptOptions {
  MpirunOptions mpirun;
  std::vector<std::string> command;  ///< of a rank
  std::string folder;                ///< of its logs and dumps; exists
  HangLimits limits;
  Listening listening = listening_on_loopback();  ///< of the control socket
};

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

class Attempt {
 public:
  enum class Wish { none, yield, stop, kill };  ///< see control_socket.hpp; later ones win

  /// `on_event` gets the lines of rank 0's events.
  Attempt(AttemptOptions options, std::function<void(const std::string&)> on_event);
  /// `wish` is asked several times a second; `wake` is a descriptor that becomes readable when it should be asked.
  /// On return no process of this machine is left.
  Outcome run(const std::function<Wish()>& wish, int wake);

 private:
  void hear(RankMessage message, double now);
  void hello(int rank, std::string rest, double now);
  void fault(Outcome::Kind kind, int rank, int code, const std::string& message, double settle);
  void lost(int rank);
  void ask(Wish wish);
  std::optional<Outcome> look(double now);
  std::optional<Outcome> mpirun_ended(double now);
  [[nodiscard]] Outcome hung(const Hang& hang, double now);
  void end_processes(bool at_once);
  [[nodiscard]] double now() const { return seconds_since(start_); }

  AttemptOptions options_;
  std::function<void(const std::string&)> on_event_;
  Clock::time_point start_ = Clock::now();
  std::string secret_;  ///< a rank proves by it that it is one of this attempt
  ControlServer server_;
  Child mpirun_;
  HangWatch watch_;
  Wish wished_ = Wish::none;
  std::map<int, std::string> hosts_;  ///< by rank
  std::map<int, int> codes_;          ///< of ranks that said good-bye
  std::optional<Outcome> fault_;
  double settled_at_ = 0;  ///< when fault_ is final: a cause may come after its effect
  std::optional<double> ended_at_;
};

}  // namespace lockstep::launch
