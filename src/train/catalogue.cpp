#include "train/catalogue.hpp"

namespace lockstep::train {

config::Catalogue catalogue_of(const Registries& registries) {
  config::Catalogue catalogue;
  for (const OpDef* op : registries.ops.all()) {
    config::NamedAttributes entry;
    entry.name = op->name;
    entry.doc = op->doc;
    entry.shorthand = op->shorthand;
    entry.attributes = op->attributes;
    entry.takes_inputs = op->max_inputs != 1;
    entry.batch_statistics = op->name == "batch_norm";
    if (op->kind == OpKind::layer) catalogue.layers.push_back(entry);
    if (op->kind == OpKind::loss) catalogue.losses.push_back(entry);
    if (op->kind == OpKind::metric) catalogue.metrics.push_back(op->name);
  }
  for (const auto& [name, model] : registries.models.all()) {
    config::NamedAttributes entry;
    entry.name = name;
    entry.doc = model.doc;
    entry.shorthand = model.shorthand;
    entry.attributes = model.attributes;
    entry.batch_statistics = model.batch_statistics;
    catalogue.models.push_back(entry);
  }
  for (const AugmentDef* step : registries.augmentations.all()) {
    config::NamedAttributes entry;
    entry.name = step->name;
    entry.doc = step->doc;
    entry.shorthand = step->shorthand;
    entry.attributes = step->attributes;
    catalogue.augmentations.push_back(entry);
    if (!step->random) catalogue.preparations.push_back(entry);
  }
  return catalogue;
}

}  // namespace lockstep::train
