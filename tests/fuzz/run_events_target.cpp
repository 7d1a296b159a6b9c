// events.jsonl of a run directory, as `lockstep report` reads it.
#include "cli/run_events.hpp"
#include "fuzz/support.hpp"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Folder folder;
  folder.put("events.jsonl", fuzz::text_of(data, size));
  fuzz::accepts([&] {
    const auto run = cli::read_run_events(folder.path());
    for (std::size_t i = 1; i < run.steps.size(); ++i) {
      fuzz::require(run.steps[i - 1].step < run.steps[i].step, "each step is there once, in order");
    }
  });
  return 0;
}
