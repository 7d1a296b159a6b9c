// lockstep completion bash: the completion script, generated from the commands themselves. `cmake --install` puts it
// where bash finds it.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <string>

#include "cli/commands.hpp"
#include "cli/validators.hpp"

namespace lockstep::cli {

namespace {

/// The words that may follow a command: its subcommands, then its options.
std::string words_after(const CLI::App& command) {
  std::string words;
  const auto add = [&words](const std::string& word) { words += (words.empty() ? "" : " ") + word; };
  for (const CLI::App* child : command.get_subcommands({})) add(child->get_name());
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) add("--" + name);
  }
  return words;
}

/// For `command` and all its subcommands, collects `path` as typed ("data info") and the words that may follow.
void collect(const CLI::App& command, const std::string& path, std::string& known, std::string& cases) {
  cases += fmt::format("    '{}') words='{}' ;;\n", path, words_after(command));
  for (const CLI::App* child : command.get_subcommands({})) {
    known += fmt::format("{}'{} {}'", known.empty() ? "" : "|", path, child->get_name());
    collect(*child, path.empty() ? child->get_name() : path + " " + child->get_name(), known, cases);
  }
}

std::string bash_script(const CLI::App& program) {
  std::string known, cases;
  collect(program, "", known, cases);
  return fmt::format(
      R"(# bash completion for lockstep; written by `lockstep completion bash`.
_lockstep() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} command='' word words=''
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$command $word" in
      {}) command=${{command:+$command }}$word ;;
    esac
  done
  case $command in
{}  esac
  [[ $current == -* ]] || words=${{words%%--*}}
  # Nothing fits: bash goes on with file names.
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o default -F _lockstep lockstep
)",
      known, cases);
}

}  // namespace

void add_completion(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand("completion", "Write a completion script for a shell.");
  command->footer("Example:\n  source <(lockstep completion bash)");
  command->add_option("shell", "the shell: bash")->required()->check(one_of({"bash"}));
  command->callback([&program, &run] {
    run = [&program] {
      fmt::print("{}", bash_script(program));
      return 0;
    };
  });
}

}  // namespace lockstep::cli
