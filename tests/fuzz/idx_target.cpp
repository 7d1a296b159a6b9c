// IDX: a file of images and one of labels.
#include "data/open.hpp"
#include "fuzz/support.hpp"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Folder folder;
  std::string_view rest = fuzz::text_of(data, size);
  const std::string images = folder.put("images", fuzz::take_file(rest)), labels = folder.put("labels", rest);
  fuzz::accepts([&] {
    fuzz::read_samples(*data::open(fuzz::source(SourceKind::idx, {images, labels}), {.threads = 1}));
  });
  return 0;
}
