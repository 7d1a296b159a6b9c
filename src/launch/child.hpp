// Child processes. A child has its own process group, so that a terminal's Ctrl-C reaches only this program, and gets
// SIGTERM (one that trains: SIGUSR1) when this program dies.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/spans.hpp"

namespace lockstep::launch {

/// How a child is asked to stop.
enum class Trains {
  nothing,     ///< by SIGTERM
  in_process,  ///< lockstep itself: by SIGUSR1, which it does not count as a second request
  on_ranks,    ///< mpirun: by SIGUSR1, which it passes on to its ranks. It would answer SIGTERM, as a service manager
               ///< sends it to all processes, by killing them a second later, so it does not get it: end it by SIGINT
};

struct ChildOptions {
  std::string output;                              ///< file for both streams, appended to; empty: inherited
  std::map<std::string, std::string> environment;  ///< in addition to this program's own
  int errors = -1;                                 ///< descriptor for stderr alone, before `output`; -1: none
  int prints = -1;                                 ///< descriptor for stdout alone, likewise
  Trains trains = Trains::nothing;
  std::string input = {};  ///< what it reads from stdin
};

/// Whether SIGUSR1 asks the child for a checkpoint, which this program passes stop signals on as.
[[nodiscard]] bool signals_are_passed_on();

class Child {
 public:
  /// Throws Error(infrastructure) if no process can be created. A program that cannot be started ends with 127.
  Child(const std::vector<std::string>& command, const ChildOptions& options);
  /// Kills a child that is still running.
  ~Child();
  Child(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  Child& operator=(Child&&) = delete;

  pid_t pid() const { return pid_; }
  /// Its exit code, or 128 + signal; nullopt while it runs.
  std::optional<int> poll();
  std::optional<int> wait(std::chrono::milliseconds patience);
  void signal(int number) const;
  bool killed() const { return killed_; }  ///< it ended by a signal

 private:
  pid_t pid_ = -1;
  std::optional<int> code_;
  bool killed_ = false;
};

struct CommandOutput {
  int code = 0;
  std::string output;  ///< stdout and stderr, in order of arrival
};

/// Runs a command to its end; the code is 124, with the output so far, if it takes longer than `patience`.
[[nodiscard]] CommandOutput run_command(const std::vector<std::string>& command, std::chrono::milliseconds patience);

/// A command that runs in the background, with stdout and stderr kept apart.
class BackgroundCommand {
 public:
  BackgroundCommand(const std::vector<std::string>& command, std::chrono::milliseconds patience,
                    const std::string& input = {});
  BackgroundCommand(const BackgroundCommand&) = delete;
  BackgroundCommand& operator=(const BackgroundCommand&) = delete;
  ~BackgroundCommand();

  struct Result {
    int code = 0;  ///< 124: it took longer than `patience`, and was killed
    std::string output, errors;
  };
  /// Its result, once; nullopt while it runs. Never waits.
  [[nodiscard]] std::optional<Result> poll();

 private:
  int output_, errors_;  ///< files in memory
  Clock::time_point end_;
  std::optional<Child> child_;
};

/// What a child of this program left in the file of its output: its last message, without "lockstep: ", or else its
/// last line.
[[nodiscard]] std::string message_in_log(const std::string& output);

/// Where this program is installed: its path here, and on other hosts.
[[nodiscard]] std::string installed_program();

/// What starts this very program again while it runs, though another one may have been installed in its place since.
[[nodiscard]] std::string own_program();

/// The same for a command of mpirun, whose ranks run on hosts that have no such process: there the installed one.
[[nodiscard]] std::vector<std::string> own_program_on_hosts();

/// This program's own command line, the program by own_program().
[[nodiscard]] std::vector<std::string> own_command_line();

}  // namespace lockstep::launch
