// key=value words of the command line, one per line, applied to the embedded digits job.
#include <sstream>

#include "config/config.hpp"
#include "config/test_catalogue.hpp"
#include "fuzz/support.hpp"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const config::Catalogue catalogue = config::test_catalogue();
  std::istringstream lines{std::string(fuzz::text_of(data, size))};
  std::vector<std::string> overrides;
  for (std::string line; std::getline(lines, line);) overrides.push_back(line);
  JobFile job;
  if (!fuzz::accepts([&] { job = config::default_job(overrides, catalogue, false); })) return 0;
  fuzz::insist("the canonical form of a job is a job", [&] {
    const CanonicalJob form = config::canonical(job, catalogue);
    const CanonicalJob again =
        config::canonical(config::load_text(form.text, "job.yaml", {}, catalogue, false), catalogue);
    fuzz::require(again.text == form.text, "the canonical form of a job is its own canonical form");
  });
  return 0;
}
