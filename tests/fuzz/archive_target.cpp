// Archives of every kind, by libarchive or as a plain tar: every listed member can be read.
#include "data/archive.hpp"
#include "fuzz/support.hpp"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint64_t kMaxUnpacked = std::uint64_t{32} << 20;
  static const fuzz::Folder folder;
  const std::string path = folder.put("archive", fuzz::text_of(data, size));
  const data::UnpackLimits limits{.held = kMaxUnpacked, .held_without_copy = kMaxUnpacked, .cache_directory = ""};
  std::unique_ptr<data::FileTree> tree;
  if (!fuzz::accepts([&] { tree = data::open_tree(path, data::make_byte_counter(), nullptr, limits); })) return 0;
  fuzz::insist("a member can be read", [&] {
    std::vector<std::byte> scratch;
    for (const auto& entry : tree->files()) {
      fuzz::require(tree->read(entry, 0, entry.size, scratch).size() == entry.size, "a member is read whole");
    }
  });
  return 0;
}
