#include "train/initialize.hpp"

#include "core/glob.hpp"
#include "lockstep/error.hpp"
#include "train/safetensors.hpp"

namespace lockstep::train {

void initialize_from_file(const InitializeOptions& options, Model& model) {
  const auto file = SafetensorsFile::read(options.from);
  std::int64_t filled = 0;
  for (auto* block : {&model.parameters, &model.states}) {
    for (std::size_t i = 0; i < block->size(); ++i) {
      if (!options.only.empty() && !matches_any(options.only, block->name(i))) continue;
      file.copy(block->name(i), block->shape(i), block->at(i));
      ++filled;
    }
  }
  if (filled == 0) {
    throw Error(ExitCode::configuration, "job.initialize.only: no parameter of the model matches these patterns");
  }
}

}  // namespace lockstep::train
