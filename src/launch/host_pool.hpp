// The hosts that may be used now: what the list says, less those that do not answer.
//
// The list is read again every few seconds. A host that is new, or was lost, is asked for the program's version by
// the agent, in the background, and is usable once it has answered; a lost one is asked again now and then. This
// machine needs no asking.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/spans.hpp"
#include "launch/child.hpp"
#include "launch/hosts.hpp"

namespace lockstep::launch {

struct PoolOptions {
  std::function<Hosts()> list;  ///< may throw; then the list stays as it was. Quick: a string or a file
  std::string agent;            ///< words of the command that runs another on a host: "ssh"
  std::string program;          ///< this program, where other hosts have it
  double read_again_seconds = 5;
  double ask_again_seconds = 30;
  std::string discover = {};  ///< a script that prints the list, run in the background; then `list` is not asked
};

class HostPool {
 public:
  /// Reads the list. Throws what it throws.
  explicit HostPool(PoolOptions options);
  /// Reads the list again when it is time, and hears the hosts that were asked. Never waits.
  void refresh();
  /// Asks those that were silent at once, and not only after `ask_again_seconds`.
  void ask_silent_now();
  /// Waits until every host has answered or failed to.
  void settle(std::chrono::milliseconds patience);
  [[nodiscard]] Hosts usable() const;
  [[nodiscard]] const Hosts& listed() const { return listed_; }
  /// Runs the program with these arguments on the remote ones of `hosts`, all at once; who does not end with 0 within
  /// `patience` is lost until it answers again. Returns their names.
  std::vector<std::string> run_everywhere(const Hosts& hosts, const std::string& arguments,
                                          std::chrono::milliseconds patience);
  /// Asks all of them anew, and waits for their answers as settle() does. Who does not answer is lost.
  void ask_all_again(std::chrono::milliseconds patience);
  /// What a host that does not answer, or what the agent says about it, asked once more: one line for people.
  [[nodiscard]] std::string why_silent(const std::string& host) const;
  /// What went wrong since the last call, for people. A host that stays silent is told once.
  [[nodiscard]] std::vector<std::string> take_problems();

 private:
  struct Question {
    std::unique_ptr<Child> child;  ///< null: not asked just now
    Clock::time_point since;
  };
  [[nodiscard]] bool answered(const std::string& host) const;
  [[nodiscard]] std::vector<std::string> agent_command(const std::string& host, const std::string& arguments) const;
  [[nodiscard]] Question ask(const std::string& host) const;
  void hear(const std::string& host, Question& question);

  void read_list();
  void take_list(const std::function<Hosts()>& list);

  PoolOptions options_;
  Hosts listed_;
  std::unique_ptr<BackgroundCommand> discovery_;  ///< null: the script does not run
  Clock::time_point read_at_;
  std::set<std::string> answered_, told_;      ///< told_: silent, and said so
  std::map<std::string, Question> questions_;  ///< of hosts that have not answered
  std::vector<std::string> problems_;
  std::string last_problem_;
};

}  // namespace lockstep::launch
