// Job files: YAML to a Job. The canonical form of an accepted job is accepted, too, and gives the same job.
#include "config/config.hpp"
#include "config/test_catalogue.hpp"
#include "fuzz/support.hpp"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const config::Catalogue catalogue = config::test_catalogue();
  JobFile job;
  const std::string text(fuzz::text_of(data, size));
  if (!fuzz::accepts([&] { job = config::load_text(text, "job.yaml", {}, catalogue, false); })) return 0;
  (void)config::finer_batch(job, catalogue);
  fuzz::insist("the canonical form of a job is a job", [&] {
    const CanonicalJob form = config::canonical(job, catalogue);
    const CanonicalJob again =
        config::canonical(config::load_text(form.text, "job.yaml", {}, catalogue, false), catalogue);
    fuzz::require(again.text == form.text, "the canonical form of a job is its own canonical form");
    fuzz::require(again.digest == form.digest, "the canonical form of a job has its digest");
    fuzz::require(config::differences(form.text, again.text).empty(), "a job does not differ from itself");
  });
  return 0;
}
