// From an exception, or a mistake on the command line, to a message on stderr and an exit code.
#pragma once

#include <exception>

namespace CLI {  // NOLINT(readability-identifier-naming): another library's
class App;
class ParseError;
}  // namespace CLI

namespace lockstep::cli {

/// Prints "lockstep: <message>" and returns exit_code() of the error.
int report(const std::exception& error);

/// Prints help if it was requested and returns 0; otherwise prints what is wrong with which command and what to try,
/// and returns 64.
int report_parse_error(const CLI::App& program, const CLI::ParseError& error);

/// The end of every command, with its code or the exception that ended it: output that could not be written is an
/// error, 1 where there is no other code.
int close_output(int code, const std::exception* error = nullptr);

}  // namespace lockstep::cli
