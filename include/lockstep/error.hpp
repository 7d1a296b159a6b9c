// Errors: one type, and one table of exit codes.
//
// A person's mistake is `usage`, `data` or `configuration`; the message says where, what was expected, what was found
// and what to try. A machine's failure is `infrastructure`; the message names host, rank, step and operation. A host
// that differs from the others of the job, or lacks what they have, is `unfit_host`.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace lockstep {

/// Exit codes of every lockstep command. 64-74 and 76-78 are permanent: a supervisor must not retry them.
enum class ExitCode : int {
  done = 0,
  infrastructure = 1,  ///< a lost rank, a missed deadline, a full disk: retry with back-off
  usage = 64,          ///< bad command line, wrong world size
  data = 65,           ///< the data set is missing, damaged or not what the job says
  other_data = 66,     ///< a run would go on with other data than it began with
  internal = 70,       ///< a bug in lockstep
  cannot_create = 73,  ///< the run directory is locked, not empty or not writable
  interrupted = 75,    ///< checkpointed after a signal: run again to go on
  diverged = 76,       ///< the loss is not finite
  configuration = 78,  ///< the job file is wrong
  unfit_host = 79,     ///< this host cannot run the job as it is, another one may: leave it out
};

class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// The exit code of a process that ends with this exception: Error's own; `infrastructure` for std::bad_alloc, and for
/// std::system_error where the machine is at fault; else `internal`.
[[nodiscard]] int exit_code(const std::exception& error);

/// Throws Error(internal) with the failed expression and its source location.
[[noreturn]] void check_failed(const char* expression, const char* file, int line, const std::string& detail);

}  // namespace lockstep

/// Checks an internal invariant. For a user's mistake, throw an Error instead.
#define LOCKSTEP_CHECK(expression, detail) \
  ((expression) ? void(0) : ::lockstep::check_failed(#expression, __FILE__, __LINE__, detail))
