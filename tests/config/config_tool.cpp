// For schema_verdicts.py: prints, with these tests' catalogue, the schema, the reference page, or the canonical form of
// a job (its data need not exist). Exits as lockstep does.
#include <fmt/format.h>

#include <string_view>

#include "config/config.hpp"
#include "config/test_catalogue.hpp"

int main(int count, char** arguments) {
  using namespace lockstep::config;
  const std::string_view what = count > 1 ? arguments[1] : "";
  try {
    if (what == "schema") {
      fmt::print("{}\n", schema(test_catalogue()));
    } else if (what == "markdown") {
      fmt::print("{}\n", reference_markdown(test_catalogue()));
    } else if (what == "canonical" && count > 2) {
      const auto job = load(arguments[2], {arguments + 3, arguments + count}, test_catalogue(), false);
      fmt::print("{}", canonical(job, test_catalogue()).text);
    } else {
      fmt::print(stderr, "usage: config_tool schema | markdown | canonical JOB [KEY=VALUE...]\n");
      return static_cast<int>(lockstep::ExitCode::usage);
    }
  } catch (const lockstep::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.code());
  }
}
