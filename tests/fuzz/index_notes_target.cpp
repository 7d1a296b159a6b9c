// Notes of an earlier index, as stored in the cache: what is read is written back equal.
#include "data/index_notes.hpp"
#include "fuzz/support.hpp"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes;
  if (!fuzz::accepts([&] { bytes = data::IndexNotes::read(fuzz::text_of(data, size)).write(); })) return 0;
  fuzz::insist("notes are read as they were written",
               [&] { fuzz::require(data::IndexNotes::read(bytes).write() == bytes, "notes stay the same"); });
  return 0;
}
