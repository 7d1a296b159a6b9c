#include "checkpoint/initialize.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/safetensors.hpp"
#include "core/glob.hpp"
#include "core/nearest.hpp"
#include "lockstep/error.hpp"

namespace lockstep::checkpoint {

namespace {

void require_matches(const InitializeOptions& options, const Place& place, const std::vector<std::string>& names) {
  for (const auto& pattern : options.only) {
    if (std::any_of(names.begin(), names.end(), [&](const auto& name) { return matches(pattern, name); })) continue;
    const std::string where = place.text();
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected a pattern over the model's parameters, but none matches '{}'{}",
                            where.empty() ? "job.initialize.only" : where, pattern, did_you_mean(pattern, names)));
  }
}

void require_tensor(const SafetensorsFile& file, const std::string& name) {
  if (file.tensors().contains(name)) return;
  std::vector<std::string> known;
  for (const auto& [other, tensor] : file.tensors()) known.push_back(other);
  throw Error(ExitCode::data, fmt::format("{}: it has no tensor '{}'{}; initialize.only takes some of the parameters",
                                          file.name(), name, did_you_mean(name, known)));
}

}  // namespace

void initialize_from_file(const InitializeOptions& options, const Place& place, optim::Model& model) {
  const auto file = SafetensorsFile::read(options.from);
  std::vector<std::string> names;
  for (const auto* block : {&model.parameters, &model.states}) {
    for (std::size_t i = 0; i < block->size(); ++i) names.push_back(block->name(i));
  }
  require_matches(options, place, names);
  for (auto* block : {&model.parameters, &model.states}) {
    for (std::size_t i = 0; i < block->size(); ++i) {
      if (!options.only.empty() && !matches_any(options.only, block->name(i))) continue;
      require_tensor(file, block->name(i));
      file.copy(block->name(i), block->shape(i), block->at(i));
    }
  }
}

}  // namespace lockstep::checkpoint
