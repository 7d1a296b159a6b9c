#include "run/train/catalogue.hpp"

#include <algorithm>
#include <type_traits>

#include "core/top_k.hpp"
#include "lockstep/choices.hpp"
#include "lockstep/error.hpp"
#include "step/optim/registry.hpp"

namespace lockstep::train {

namespace {

template <class Def>
config::NamedAttributes named(const Def& def) {
  config::NamedAttributes entry;
  entry.name = def.name;
  entry.doc = def.doc;
  if constexpr (requires { def.shorthand; }) entry.shorthand = def.shorthand;
  entry.attributes = def.attributes;
  return entry;
}

/// For optimizers, schedules and readers.
template <class Def>
std::vector<config::NamedAttributes> named(const Registry<Def>& registry) {
  std::vector<config::NamedAttributes> entries;
  for (const Def* def : registry.all()) {
    config::NamedAttributes& entry = entries.emplace_back(named(*def));
    entry.checks = def->checks;
    if constexpr (std::is_same_v<Def, OptimizerDef>) {
      entry.learning_rate = def->learning_rate;
      entry.on_gpus = optim::is_on_gpus(def->name);
    }
  }
  return entries;
}

/// Throws Error(usage) if the reader, or one of its attributes, has a name that every source has.
void require_own_names(const ReaderDef& reader) {
  const auto& kinds = kNames<SourceKind>;
  if (std::find(kinds.begin(), kinds.end(), reader.name) != kinds.end()) {
    throw Error(ExitCode::usage, "the reader '" + reader.name + "' is registered twice");
  }
  for (const AttributeSpec& attribute : reader.attributes) {
    if (attribute.name != "path" && attribute.name != "count" && attribute.name != "weights") continue;
    throw Error(ExitCode::usage,
                "the reader '" + reader.name + "' declares '" + attribute.name + "', which every reader has");
  }
}

}  // namespace

config::Catalogue catalogue_of(const Registries& registries) {
  config::Catalogue catalogue;
  for (const OpDef* op : registries.ops.all()) {
    config::NamedAttributes entry = named(*op);
    entry.takes_inputs = op->max_inputs != 1;
    entry.batch_statistics = op->name == "batch_norm";
    if (op->kind == OpKind::layer) catalogue.layers.push_back(entry);
    if (op->kind == OpKind::loss) catalogue.losses.push_back(entry);
    if (op->kind == OpKind::metric) catalogue.metrics.push_back(op->name == kTopKOp ? "top5" : op->name);
  }
  for (const ModelDef* model : registries.models.all()) {
    config::NamedAttributes entry = named(*model);
    entry.batch_statistics = model->batch_statistics;
    catalogue.models.push_back(entry);
  }
  catalogue.optimizers = named(registries.optimizers);
  catalogue.schedules = named(registries.schedules);
  for (const ReaderDef* reader : registries.readers.all()) require_own_names(*reader);
  catalogue.readers = named(registries.readers);
  for (const AugmentDef* step : registries.augmentations.all()) {
    const config::NamedAttributes entry = named(*step);
    catalogue.augmentations.push_back(entry);
    if (!step->random) catalogue.preparations.push_back(entry);
  }
  return catalogue;
}

}  // namespace lockstep::train
