#include "train/library_builds.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "core/digest.hpp"

namespace lockstep::train {

namespace {

constexpr std::array<std::string_view, 7> kLibraries = {"libdnnl",  "libjpeg", "liblockstep_cuda", "libm", "libmvec",
                                                        "libpng16", "libz"};
constexpr std::size_t kDigits = 6;

/// "libm" of "/lib/x86_64-linux-gnu/libm.so.6"
std::string_view name_of(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  return path.substr(0, path.find(".so"));
}

std::size_t padded(std::size_t bytes) {
  return (bytes + 3) / 4 * 4;
}

/// The first digits of the build id in a segment of notes; empty where it has none.
std::string build_id_of(std::span<const std::byte> notes) {
  ElfW(Nhdr) note{};
  while (notes.size() >= sizeof(note)) {
    std::memcpy(&note, notes.data(), sizeof(note));
    const std::size_t name = padded(note.n_namesz), value = padded(note.n_descsz);
    if (notes.size() < sizeof(note) + name + value) return "";
    if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz >= kDigits / 2) {
      std::string digits;
      for (const std::byte byte : notes.subspan(sizeof(note) + name, kDigits / 2)) {
        digits += fmt::format("{:02x}", std::to_integer<int>(byte));
      }
      return digits;
    }
    notes = notes.subspan(sizeof(note) + name + value);
  }
  return "";
}

std::string build_of(const dl_phdr_info& library) {
  for (const auto& segment : std::span(library.dlpi_phdr, library.dlpi_phnum)) {
    if (segment.p_type != PT_NOTE) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader tells addresses as numbers
    const auto* begin = reinterpret_cast<const std::byte*>(library.dlpi_addr + segment.p_vaddr);
    if (std::string id = build_id_of({begin, segment.p_memsz}); !id.empty()) return id;
  }
  std::ifstream file(library.dlpi_name, std::ios::binary);
  return sha256(std::string(std::istreambuf_iterator<char>(file), {})).substr(0, kDigits);
}

}  // namespace

std::string library_builds() {
  std::map<std::string, std::string> builds;
  const auto add = [](dl_phdr_info* library, std::size_t /*size*/, void* found) {
    const std::string_view name = name_of(library->dlpi_name);
    if (std::find(kLibraries.begin(), kLibraries.end(), name) == kLibraries.end()) return 0;
    static_cast<std::map<std::string, std::string>*>(found)->emplace(name, build_of(*library));
    return 0;
  };
  dl_iterate_phdr(add, &builds);
  std::vector<std::string> texts;
  for (const auto& [name, build] : builds) texts.push_back(name + " " + build);
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace lockstep::train
