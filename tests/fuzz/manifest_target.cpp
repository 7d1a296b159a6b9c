// manifest.json of a checkpoint: accepted input is written and accepted again, with the same content.
#include "core/untrusted.hpp"
#include "fuzz/support.hpp"
#include "run/checkpoint/manifest.hpp"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  checkpoint::Manifest manifest;
  if (!fuzz::accepts([&] { manifest = checkpoint::parse_manifest(fuzz::text_of(data, size), "manifest.json"); }))
    return 0;
  for (const auto& tensor : manifest.tensors) {
    for (const auto& piece : tensor.pieces) {
      fuzz::require(manifest.files.contains(piece.file), "a piece lies in a file of the checkpoint");
      (void)checkpoint::piece_name(tensor, piece);
    }
  }
  for (const auto& [name, file] : manifest.files) {
    fuzz::require(is_plain_name(name), "nothing outside the checkpoint is named");
  }
  fuzz::insist("a manifest is read as it was written", [&] {
    const std::string text = checkpoint::to_text(manifest);
    fuzz::require(checkpoint::to_text(checkpoint::parse_manifest(text, "manifest.json")) == text,
                  "a manifest stays the same");
  });
  return 0;
}
