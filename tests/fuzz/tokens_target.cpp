// Token files: the first byte is the context, then two files.
#include "data/open.hpp"
#include "fuzz/support.hpp"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  static const fuzz::Folder folder;
  std::string_view rest = fuzz::text_of(data + 1, size - 1);
  const std::string first = folder.put("a.tokens", fuzz::take_file(rest)), second = folder.put("b.tokens", rest);
  SourceOptions source = fuzz::source(SourceKind::tokens, {first, second});
  source.context = data[0];
  fuzz::accepts([&] {
    const auto set = data::open(source, {.threads = 1});
    fuzz::read_samples(*set);
    Sample sample;
    set->read_variant(set->size() - 1, size, sample);
  });
  return 0;
}
