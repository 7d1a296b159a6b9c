// Plain tars, of which lockstep keeps offsets: every member is inside the archive and can be read.
#include <algorithm>

#include "data/archive.hpp"
#include "fuzz/support.hpp"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Folder folder;
  const std::string path = folder.put("a.tar", fuzz::text_of(data, size));
  std::unique_ptr<data::FileTree> tree;
  fuzz::accepts([&] {
    auto file = std::make_unique<data::File>(path, data::make_byte_counter());
    if (!data::is_plain_tar(*file)) return;
    auto found = data::open_plain_tar(std::move(file), path);
    found->list();
    tree = std::move(found);
  });
  if (!tree) return 0;
  fuzz::insist("a member can be read", [&] {
    std::vector<std::byte> scratch;
    for (const auto& entry : tree->files()) {
      const std::uint64_t most = std::max<std::uint64_t>(size, data::UnpackLimits{}.small);  // a sparse one has holes
      fuzz::require(entry.size <= most, "a member lies inside the archive");
      fuzz::require(tree->read(entry, 0, entry.size, scratch).size() == entry.size, "a member is read whole");
    }
  });
  fuzz::insist("a list of files is read as it was written", [&] {
    const std::string listing = tree->write_listing();
    tree->read_listing(listing);
    fuzz::require(tree->write_listing() == listing, "a list of files stays the same");
  });
  return 0;
}
