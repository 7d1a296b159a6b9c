// Mistakes of the command line: one message with the nearest known name, exit 64.
#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): another library's
class App;
class ParseError;
}  // namespace CLI

namespace lockstep::cli {

/// The subcommand that was being parsed: the deepest one named on the command line, or the program.
[[nodiscard]] const CLI::App& named_command(const CLI::App& program);

/// "lockstep data fetch"
[[nodiscard]] std::string full_name(const CLI::App& command);

/// Long and short names of a command's options, with their dashes.
[[nodiscard]] std::vector<std::string> option_names(const CLI::App& command);

/// Prints help where it was asked for and returns 0; else prints what is wrong with which command and what to try, and
/// returns 64.
int report_parse_error(const CLI::App& program, const CLI::ParseError& error);

}  // namespace lockstep::cli
