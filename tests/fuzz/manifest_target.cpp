// manifest.json of a checkpoint: what is taken is written and taken again, and says the same.
#include "fuzz/support.hpp"
#include "train/checkpoint_manifest.hpp"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  train::Manifest manifest;
  if (!fuzz::accepts([&] { manifest = train::parse_manifest(fuzz::text_of(data, size), "manifest.json"); })) return 0;
  for (const auto& tensor : manifest.tensors) {
    for (const auto& piece : tensor.pieces) {
      fuzz::require(manifest.files.contains(piece.file), "a piece lies in a file of the checkpoint");
      (void)train::piece_name(tensor, piece);
    }
  }
  for (const auto& [name, file] : manifest.files) {
    fuzz::require(name.find('/') == std::string::npos, "nothing outside the checkpoint is named");
  }
  fuzz::insist("a manifest is read as it was written", [&] {
    const std::string text = train::to_text(manifest);
    fuzz::require(train::to_text(train::parse_manifest(text, "manifest.json")) == text, "a manifest stays the same");
  });
  return 0;
}
