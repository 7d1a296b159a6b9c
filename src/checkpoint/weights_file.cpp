#include "checkpoint/weights_file.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "core/nearest.hpp"
#include "lockstep/error.hpp"

namespace lockstep::checkpoint {

namespace {

/// Which program wrote the file, according to its metadata: for PyTorch models, "pt" is customary (the transformers
/// library writes it, too).
WeightNames writer_of(const SafetensorsFile& file) {
  const auto found = file.metadata().find("format");
  if (found == file.metadata().end()) return WeightNames::automatic;
  if (found->second == "lockstep") return WeightNames::lockstep;
  return found->second == "pt" ? WeightNames::torch : WeightNames::automatic;
}

}  // namespace

WeightsFile::WeightsFile(SafetensorsFile file, const Graph& graph, WeightNames names, std::string remedy)
    : file_(std::move(file)),
      flattened_(flattened_tensors(graph)),
      names_(names == WeightNames::automatic ? writer_of(file_) : names),
      remedy_(std::move(remedy)) {}

std::string WeightsFile::name_in_file(const std::string& tensor) const {
  constexpr std::string_view kOurs = ".running_variance", kTorch = ".running_var";
  if (file_.tensors().contains(tensor) || !tensor.ends_with(kOurs)) return tensor;
  const std::string theirs = tensor.substr(0, tensor.size() - kOurs.size()) + std::string(kTorch);
  return file_.tensors().contains(theirs) ? theirs : tensor;
}

void WeightsFile::require(const std::string& tensor, const Shape& shape) const {
  const std::string name = name_in_file(tensor);
  if (!file_.tensors().contains(name)) {
    std::vector<std::string> known;
    for (const auto& [other, loaded] : file_.tensors()) known.push_back(other);
    throw Error(ExitCode::data, fmt::format("{}: it has no tensor '{}'{}; initialize.only takes some of the parameters",
                                            file_.name(), tensor, did_you_mean(tensor, known)));
  }
  file_.require(name, shape);
  if (names_ == WeightNames::lockstep) return;
  if (names_ == WeightNames::torch && !flattened_.unclear.empty()) {
    throw Error(
        ExitCode::data,
        fmt::format("{}: PyTorch flattens images in the order channel, height, width, lockstep in height, width, "
                    "channel, and {} mixes such an image with something else; put the columns of the linear "
                    "layers behind it in lockstep's order yourself, and set initialize.names to lockstep",
                    file_.name(), flattened_.unclear));
  }
  const bool differs = flattened_.by_name.contains(tensor) || !flattened_.unclear.empty();
  if (names_ == WeightNames::torch || !differs) return;
  throw Error(ExitCode::data,
              fmt::format("{}: expected to know who wrote it, since PyTorch flattens images in the order channel, "
                          "height, width, lockstep in height, width, channel, and '{}' is behind a flatten; {}",
                          file_.name(), tensor, remedy_));
}

void WeightsFile::copy(const std::string& tensor, const Shape& shape, std::span<float> out, std::int64_t first) const {
  const std::string name = name_in_file(tensor);
  const auto found = flattened_.by_name.find(tensor);
  if (names_ != WeightNames::torch || found == flattened_.by_name.end()) return file_.copy(name, shape, out, first);
  std::vector<float> all(static_cast<std::size_t>(elements(shape)));
  file_.copy(name, shape, all);
  const std::int64_t columns = found->second.elements();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t at = first + static_cast<std::int64_t>(i), column = at % columns;
    out[i] = all[static_cast<std::size_t>(at - column + found->second.place_channels_first(column))];
  }
}

}  // namespace lockstep::checkpoint
