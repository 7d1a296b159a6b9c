// CIFAR's binary files: class names, then a batch.
#include "data/open.hpp"
#include "fuzz/support.hpp"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Folder folder;
  std::string_view rest = fuzz::text_of(data, size);
  folder.put("batches.meta.txt", fuzz::take_file(rest));
  const std::string batch = folder.put("data_batch_1.bin", rest);
  fuzz::accepts([&] { fuzz::read_samples(*data::open(fuzz::source(SourceKind::cifar, {batch}), {.threads = 1})); });
  return 0;
}
