#include "cli/report_error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "config/config.hpp"
#include "core/nearest.hpp"
#include "core/other_words.hpp"
#include "core/say.hpp"
#include "lockstep/error.hpp"
#include "run/train/catalogue.hpp"

namespace lockstep::cli {

namespace {

// What other trainers and launchers call options, for hints about unknown ones.

// Without dashes, and with _ for each dash inside.
constexpr std::array<std::string_view, 15> kRanks = {
    "n",     "np",   "nproc",  "nproc_per_node", "nprocs",     "num_processes", "num_procs", "num_gpus",
    "ngpus", "gpus", "n_gpus", "num_workers",    "world_size", "ntasks",        "processes"};
constexpr std::array<std::string_view, 8> kJobFile = {"c",    "config", "config_file", "config_path",
                                                      "conf", "cfg",    "f",           "job"};

template <class Names>
bool is_one_of(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool has_option(const CLI::App& command, const std::string& name) {
  return command.get_option_no_throw(name) != nullptr;
}

/// The key of the job that a word stands for; "": none.
std::string job_key(const std::string& word) {
  const Registries registries = Registries::built_in();
  const auto schema = nlohmann::json::parse(config::schema(train::catalogue_of(registries)));
  std::vector<std::string> keys;
  for (const auto& [key, value] : schema.at(nlohmann::json::json_pointer("/properties/job/properties")).items())
    keys.push_back(key);
  return our_word_for(word, keys);
}

/// "; give the job file by itself: lockstep train JOB" for --config, "; did you mean '--ranks'?" for -n. `name` has its
/// dashes. Empty: the command has nothing of the kind.
std::string ours_of(const CLI::App& command, const std::string& full_name, const std::string& name) {
  std::string word = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  std::replace(word.begin(), word.end(), '-', '_');
  if (is_one_of(kRanks, word) && has_option(command, "--ranks")) return "; did you mean '--ranks'?";
  if (!has_option(command, "JOB")) return "";
  if (is_one_of(kJobFile, word)) return fmt::format("; give the job file by itself: {} JOB.yaml", full_name);
  const std::string key = name.starts_with("--") ? job_key(word) : "";
  return key.empty() ? "" : fmt::format("; settings of the job have no dashes, and an equals sign: {}=...", key);
}

/// The subcommand being parsed: the deepest one named on the command line, or the program.
const CLI::App& named_command(const CLI::App& program) {
  const CLI::App* at = &program;
  for (auto named = at->get_subcommands(); !named.empty(); named = at->get_subcommands()) at = named.front();
  return *at;
}

/// "lockstep data fetch"
std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : fmt::format("{} {}", full_name(*parent), command.get_name());
}

/// Long and short names of a command's options, including the dashes.
std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    for (const auto& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

/// What an exception of the standard library means to a user.
std::string text_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return "not enough memory on this machine; make batch_size or data.cache.memory.budget smaller, or use more "
           "micro-batches";
  }
  const auto* const system = dynamic_cast<const std::system_error*>(&error);
  if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again) {
    return "this machine refuses another thread; raise ulimit -u, or the limit of processes (pids) of the container, "
           "or make threads smaller";
  }
  return error.what();
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

/// The hint for an unknown command: its new name, if an earlier version had it.
std::string instead_of(const std::string& word, const std::vector<std::string>& commands) {
  const bool had_it = word == "exchange" && std::find(commands.begin(), commands.end(), "all-reduce") != commands.end();
  return had_it ? ", the old name of 'all-reduce'" : did_you_mean(word, commands);
}

std::string unknown(const CLI::App& command, const std::string& word) {
  const bool is_option = word.starts_with('-');
  if (is_option) {
    const std::string name = word.substr(0, word.find('='));
    const std::string ours = ours_of(command, full_name(command), name);
    const bool is_letter = name.size() <= 2;  // of which any is like any other
    return fmt::format("{}: unknown option '{}'{}", full_name(command), name,
                       ours.empty() && !is_letter ? did_you_mean(name, option_names(command)) : ours);
  }
  const auto commands = command_names(command);
  if (commands.empty()) return fmt::format("{}: unexpected argument '{}'", full_name(command), word);
  return fmt::format("{}: unknown command '{}'{}", full_name(command), word, instead_of(word, commands));
}

std::string what_is_wrong(const CLI::App& program, const CLI::App& command, const CLI::ParseError& error) {
  // Reported before anything missing: an unknown word is the more likely cause.
  for (const CLI::App* app : {&command, &program}) {
    if (const auto words = app->remaining(); !words.empty()) return unknown(*app, words.front());
  }
  if (const auto commands = command_names(command); !commands.empty()) {
    return fmt::format("{}: expected a command: {}", full_name(command), fmt::join(commands, ", "));
  }
  std::string text = error.what();
  while (text.ends_with('\n') || text.ends_with(' ')) text.pop_back();
  return fmt::format("{}: {}", full_name(command), text);
}

}  // namespace

int report(const std::exception& error) {
  say("lockstep: {}\n", text_of(error));
  return exit_code(error);
}

int report_parse_error(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App& command = named_command(program);
  if (error.get_name() == "CallForVersion") {
    fmt::print("{}\n", error.what());
    return 0;
  }
  const bool asks_for_help = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
  if (asks_for_help && program.remaining().empty()) {
    const CLI::App* parent = command.get_parent();
    fmt::print("{}", command.help(parent == nullptr ? "" : full_name(*parent)));
    return 0;
  }
  say("{}\nTry: {} --help\n", what_is_wrong(program, command, error), full_name(command));
  return static_cast<int>(ExitCode::usage);
}

int close_output(int code, const std::exception* error) {
  const auto* const system = dynamic_cast<const std::system_error*>(error);
  int cause = system != nullptr ? system->code().value() : 0;
  const bool failed_before = std::ferror(stdout) != 0;
  if (std::fflush(stdout) != 0 && cause == 0) cause = errno;
  if (!failed_before && std::ferror(stdout) == 0) return error == nullptr ? code : report(*error);
  if (error != nullptr && system == nullptr) code = report(*error);
  say("lockstep: cannot write to stdout{}{}; what was printed is not complete\n", cause == 0 ? "" : ": ",
      cause == 0 ? "" : std::strerror(cause));
  return code == 0 ? static_cast<int>(ExitCode::infrastructure) : code;
}

}  // namespace lockstep::cli
