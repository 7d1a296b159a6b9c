// Text as characters and as bytes: the first byte is the context.
#include "data/open.hpp"
#include "data/readers/utf8.hpp"
#include "fuzz/support.hpp"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  static const fuzz::Folder folder;
  const std::string_view text = fuzz::text_of(data + 1, size - 1);
  std::u32string characters;
  if (fuzz::accepts([&] { characters = data::from_utf8(text, "text"); })) {
    std::string again;
    for (const char32_t c : characters) again += data::to_utf8(c);
    fuzz::require(again == text, "UTF-8 is the same again after it was decoded");
  }
  SourceOptions source = fuzz::source(SourceKind::text, {folder.put("text", text)});
  source.context = data[0];
  for (const Tokenizer tokenizer : {Tokenizer::characters, Tokenizer::bytes}) {
    source.tokenizer = tokenizer;
    fuzz::accepts([&] { fuzz::read_samples(*data::open(source, {.threads = 1})); });
  }
  return 0;
}
