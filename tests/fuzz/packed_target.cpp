// The files that `lockstep data pack` writes.
#include "data/open.hpp"
#include "fuzz/support.hpp"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Folder folder;
  const std::string path = folder.put("a.pack", fuzz::text_of(data, size));
  fuzz::accepts([&] { fuzz::read_samples(*data::open(fuzz::source(SourceKind::packed, {path}), {.threads = 1})); });
  return 0;
}
