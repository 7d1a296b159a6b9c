// safetensors files: every tensor is inside the file and has as many bytes as its shape needs; fp32 tensors can be
// copied out, and survive a round trip.
#include <algorithm>

#include "fuzz/support.hpp"
#include "run/checkpoint/safetensors.hpp"

using namespace lockstep;

namespace {

void check_bytes(const checkpoint::LoadedTensor& tensor) {
  const bool empty = std::count(tensor.shape.begin(), tensor.shape.end(), 0) > 0;
  std::uint64_t left = tensor.bytes.size();
  for (const auto extent : tensor.shape) {
    fuzz::require(extent >= 0, "no extent is negative");
    if (empty) continue;
    fuzz::require(left % static_cast<std::uint64_t>(extent) == 0, "a tensor has the bytes of its shape");
    left /= static_cast<std::uint64_t>(extent);
  }
  if (tensor.dtype == "F32") fuzz::require(left == (empty ? 0 : 4), "a tensor has the bytes of its shape");
  fuzz::require(elements(tensor.shape) <= std::ssize(tensor.bytes), "a tensor has no more elements than bytes");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  checkpoint::SafetensorsFile file;
  const std::string text(fuzz::text_of(data, size));
  if (!fuzz::accepts([&] { file = checkpoint::SafetensorsFile::parse(text, "a.safetensors"); })) return 0;
  std::vector<std::vector<float>> values;
  std::vector<checkpoint::NamedSpan> copies;
  for (const auto& entry : file.tensors()) {
    const auto& [name, tensor] = entry;
    check_bytes(tensor);
    if (tensor.dtype != "F32") continue;
    values.emplace_back(tensor.bytes.size() / sizeof(float));
    fuzz::insist("an fp32 tensor can be copied", [&] { file.copy(entry.first, entry.second.shape, values.back()); });
    copies.push_back({name, tensor.shape, values.back()});
  }
  if (copies.size() != file.tensors().size()) return 0;
  fuzz::insist("a file can be read after it was written", [&] {
    const auto again = checkpoint::SafetensorsFile::parse(checkpoint::to_safetensors(copies, file.metadata()), "again");
    fuzz::require(again.metadata() == file.metadata(), "metadata are the same after they were written");
    for (const auto& copy : copies) {
      const auto& tensor = again.tensors().at(copy.name);
      fuzz::require(tensor.shape == copy.shape && tensor.bytes.size() == copy.values.size_bytes() &&
                        std::equal(tensor.bytes.begin(), tensor.bytes.end(), std::as_bytes(copy.values).begin()),
                    "a tensor is the same after it was written");
    }
  });
  return 0;
}
