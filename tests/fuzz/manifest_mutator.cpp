// Mutates a manifest, alone or with the file behind it, then seals it again: the last line holds the SHA-256 of
// everything before it. The file size that it states is corrected, too.
#include <string>

#include "core/digest.hpp"
#include "fuzz/mutator.hpp"

namespace {

/// The first "bytes": the file's.
void set_size(std::string& manifest, std::size_t size) {
  constexpr std::string_view kKey = "\"bytes\": ";
  const auto at = manifest.find(kKey);
  if (at == std::string::npos) return;
  const auto begin = at + kKey.size(), end = manifest.find_first_not_of("0123456789", begin);
  manifest.replace(begin, end - begin, std::to_string(size));
}

}  // namespace

void lockstep::fuzz::repair(std::vector<std::uint8_t>& file) {
  constexpr std::string_view kCut = "\n--8<--\n";  // see take_file() in support.hpp
  const std::string all(file.begin(), file.end());
  const auto cut = all.find(kCut);
  std::string manifest = all.substr(0, cut), rest = cut == std::string::npos ? "" : all.substr(cut);
  if (!rest.empty()) set_size(manifest, rest.size() - kCut.size());
  const auto at = manifest.rfind("\"manifest_sha256\"");
  if (at == std::string::npos) return;
  manifest.resize(at);
  manifest += "\"manifest_sha256\": \"" + sha256(manifest) + "\"\n}\n" + rest;
  file.assign(manifest.begin(), manifest.end());
}
