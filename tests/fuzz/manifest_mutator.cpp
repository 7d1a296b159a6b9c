// Mutates a manifest, then seals it again: the last line holds the SHA-256 of all before it.
#include <string>
#include <string_view>

#include "core/digest.hpp"
#include "fuzz/mutator.hpp"

void lockstep::fuzz::repair(std::vector<std::uint8_t>& file) {
  std::string text(file.begin(), file.end());
  const auto at = text.rfind("\"manifest_sha256\"");
  if (at == std::string::npos) return;
  text.resize(at);
  text += "\"manifest_sha256\": \"" + sha256(text) + "\"\n}\n";
  file.assign(text.begin(), text.end());
}
