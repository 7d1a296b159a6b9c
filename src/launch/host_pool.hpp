// The hosts that can be used now: those in the list that answer.
//
// The list is read again every few seconds. A host that is new, or was lost, is asked for the program's version through
// the agent, in the background, and can be used once it has answered; a lost one is asked again from time to time. This
// machine need not be asked. At most 64 are asked at once, and not all at the same moment again: each is a process
// here, and a connection to wherever names and keys are looked up.
//
// A host that is to blame for a failure is left out, and tried again later, after a longer time with each failure. Once
// others have trained, a host that is new, was lost or was left out must also be as they are: the same version, where
// bits matter the same fingerprint, and the same run directory. A host that is not is told so, where something there
// can act on it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/spans.hpp"
#include "launch/child.hpp"
#include "launch/hosts.hpp"

namespace lockstep::launch {

// What a host says of itself when it is asked whether it can join ranks that train: its version of the program, the
// fingerprint of its processor and libraries, and which launch it sees in the run directory. Pure.

struct HostAnswer {
  std::string version;      ///< "1.4.0"
  std::string fingerprint;  ///< of what its bits depend on
  std::string launch;       ///< the name in launch.lock; empty: it has no such file
};

/// What `lockstep version` prints, and after it launch.lock, perhaps among lines of the host's shell.
[[nodiscard]] HostAnswer parse_host_answer(const std::string& output);

/// Why a host with this answer cannot join those that have the other one; empty: it can. Parts that are empty in
/// `expected` are not compared.
[[nodiscard]] std::string why_unfit(const HostAnswer& found, const HostAnswer& expected);

/// The code of a command that did not end in time. Shells and ssh have greater ones for what they cannot start or
/// reach.
inline constexpr int kNoAnswer = 124;
struct PoolOptions {
  std::function<Hosts()> list;  ///< reads a string or a file; if it throws, the list does not change
  std::string agent;            ///< command that runs another one on a host: "ssh"
  std::string program;          ///< path of this program on other hosts
  double read_again_seconds = 5;
  double ask_again_seconds = 30;
  double ask_again_at_most = 0;  ///< a host that stays silent is asked less and less often, down to this; 0: it is not
  std::string discover = {};     ///< a script that prints the list, run in the background instead of calling `list`
  std::string shell = {};        ///< words between host and command, where the agent starts no shell by itself: "sh -c"
  bool same_fingerprint = false;  ///< of hosts that join others that have trained
  std::string lock_file = {};     ///< the launch's, which these must see, and
  std::string mark = {};          ///< what it holds; empty: they need not
  std::string tell_unfit = {};    ///< arguments of the program on a host that is left out, which reads why; empty: none
  std::function<bool(const std::string&)> exists = {};  ///< a host that does not is not asked; empty: all do
};

class HostPool {
 public:
  /// Reads the list. Rethrows its errors.
  explicit HostPool(PoolOptions options);
  /// Reads the list again when it is time, and processes the answers of hosts. Never waits.
  void refresh();
  /// Asks hosts that were silent now, without waiting for `ask_again_seconds`.
  void ask_silent_now();
  /// Waits until every host has answered or failed to.
  void settle(std::chrono::milliseconds patience);
  Hosts usable() const;
  const Hosts& listed() const { return listed_; }
  /// Runs the program with these arguments, and `input` on its stdin, on all remote hosts of `hosts` in parallel. A
  /// host on which it does not end with 0 within `patience` is lost until it answers again. Returns these hosts, with
  /// their codes, or 124.
  std::map<std::string, int> run_everywhere(const Hosts& hosts, const std::string& arguments,
                                            std::chrono::milliseconds patience, const std::string& input = {});
  /// The same for hosts that shall train, each of which is compared with those that have: which are unfit, and why.
  /// `why_lost` says it of a code.
  std::map<std::string, std::string> unfit(
      const Hosts& hosts, const std::string& arguments, std::chrono::milliseconds patience, const std::string& input,
      const std::function<std::string(const std::string& host, int code)>& why_lost) const;
  /// Which remote hosts of `hosts` do not see the launch's lock; empty where there is none to see.
  std::set<std::string> without_lock(const Hosts& hosts, std::chrono::milliseconds patience) const;
  /// Asks all hosts again, and waits for their answers as settle() does. Hosts that do not answer are lost.
  void ask_all_again(std::chrono::milliseconds patience);
  /// The host is to blame for a failure, as `why` says: it is not usable until it has been asked again, after
  /// `ask_again_seconds`, or twice as long with each time that it is left out without having trained.
  void leave_out(const std::string& host, const std::string& why);
  /// These hosts have done a step together: hosts that join later must be as the first of them is.
  void trained(const Hosts& hosts);
  /// Asks a silent host once more; returns what it or the agent prints, as one line.
  std::string why_silent(const std::string& host) const;
  /// Problems since the last call, as text. A host that stays silent is reported once.
  [[nodiscard]] std::vector<std::string> take_problems();

 private:
  struct Question {
    std::unique_ptr<Child> child;  ///< null: it is not being asked
    Clock::time_point since;
    std::unique_ptr<BackgroundCommand> thorough;  ///< instead of the child: what it answers is compared
    double wait = 0;                              ///< seconds, until it is asked again
    int silences = 0;                             ///< how often it has not answered
    bool open() const { return child != nullptr || thorough != nullptr; }
  };
  bool answered(const std::string& host) const;
  std::vector<std::string> agent_command(const std::string& host, const std::string& arguments) const;
  Question ask(const std::string& host) const;
  std::vector<std::string> shell_command(const std::string& host, const std::string& line) const;
  /// Words of a shell that print what parse_host_answer() reads.
  std::string question(const std::string& program) const;
  std::unique_ptr<BackgroundCommand> ask_thoroughly(const std::string& host) const;
  void hear(const std::string& host, Question& question);
  void hear_reference();
  /// Runs a line of a shell on the remote hosts of `hosts`; those that do not end it have the code 124.
  std::map<std::string, BackgroundCommand::Result> run_on(const Hosts& hosts, const std::string& line,
                                                          std::chrono::milliseconds patience,
                                                          const std::string& input) const;
  /// Reports the problem, if it is a new one, and lets the host wait.
  void refuse(const std::string& host, Question& question, const std::string& problem);
  /// In the background.
  void tell_unfit(const std::string& host, const std::string& why);

  void read_list();
  void take_list(const std::function<Hosts()>& list);

  PoolOptions options_;
  Hosts listed_;
  std::unique_ptr<BackgroundCommand> discovery_;  ///< null: the script is not running
  Clock::time_point read_at_;
  std::set<std::string> answered_, left_out_;
  std::map<std::string, std::string> reported_;  ///< why hosts cannot be used, as far as it has been reported
  std::map<std::string, int> faults_;            ///< how often a host was left out since it has trained
  std::map<std::string, Question> questions_;    ///< of hosts that cannot be used
  std::size_t open_ = 0;                         ///< of these, when the pool was refreshed
  bool crowded_ = false;                         ///< a host could not be asked yet: too many are
  std::minstd_rand jitter_{std::random_device()()};
  std::unique_ptr<BackgroundCommand> reference_question_;
  std::optional<HostAnswer> reference_;                      ///< what hosts that join must answer
  std::vector<std::unique_ptr<BackgroundCommand>> telling_;  ///< hosts that they are unfit
  std::vector<std::string> problems_;
  std::string last_problem_;
};

}  // namespace lockstep::launch
