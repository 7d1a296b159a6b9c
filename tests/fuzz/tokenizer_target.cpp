// tokenizer.json: one that is accepted encodes any text, and its tokens are text again.
#include "data/tokenizer/tokenizer_file.hpp"

#include "fuzz/support.hpp"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string file(fuzz::text_of(data, size));
  fuzz::accepts([&] {
    const auto tokenizer = data::parse_tokenizer(file, "tokenizer.json");
    const std::string text = "First Citizen:\nhe's  12345 \xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 <s>\t\r\n";
    for (const auto token : tokenizer->encode(text, "text")) {
      fuzz::require(token >= 0 && token < tokenizer->vocabulary(), "a token of the vocabulary");
    }
  });
  return 0;
}
