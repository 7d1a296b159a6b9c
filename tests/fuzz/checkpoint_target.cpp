// A checkpoint: manifest.json, then the file that it may name. Whatever both contain, only requested memory is written,
// and if a checkpoint is reported as intact, every tensor that its manifest lists completely can be loaded.
#include <filesystem>

#include "core/untrusted.hpp"
#include "fuzz/support.hpp"
#include "run/checkpoint/checkpoint.hpp"

using namespace lockstep;

namespace {

constexpr std::int64_t kMaxElements = 1 << 16;  ///< loaded from a tensor: its shape may claim anything

/// Memory for the manifest's tensors, followed by guards that a sanitizer watches.
struct Room {
  std::vector<std::vector<float>> values;
  checkpoint::Targets targets;

  explicit Room(const checkpoint::Manifest& manifest) {
    for (const auto& tensor : manifest.tensors) {
      const auto count = checked_elements(tensor.shape);
      if (!count || *count > kMaxElements) continue;
      values.emplace_back(static_cast<std::size_t>(*count));
      targets[tensor.name] = {tensor.shape, values.back()};
    }
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Folder folder;
  static const std::string directory = folder / "step-00000003";
  std::filesystem::create_directories(directory);
  std::string_view rest = fuzz::text_of(data, size);
  folder.put("step-00000003/manifest.json", fuzz::take_file(rest));
  folder.put("step-00000003/model.safetensors", rest);
  checkpoint::Checkpoint checkpoint;
  if (!fuzz::accepts([&] { checkpoint = checkpoint::open_checkpoint(directory); })) return 0;
  std::string why;
  std::optional<checkpoint::Checkpoint> sound;
  fuzz::accepts([&] { sound = checkpoint::read_checkpoint(directory, why); });
  fuzz::require(sound || !why.empty(), "of a damaged checkpoint is told what is wrong");
  const Room room(checkpoint.manifest);
  fuzz::accepts([&] { checkpoint::load(checkpoint, room.targets); });
  return 0;
}
