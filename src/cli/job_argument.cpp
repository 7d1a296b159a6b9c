#include "cli/job_argument.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::cli {

void JobArgument::add_to(CLI::App& command) {
  command.add_option("JOB", words, "a job file, then any number of overrides key=value (batch_size=256)")
      ->expected(0, -1);
}

Job JobArgument::load(const config::Catalogue& catalogue, bool need_data) {
  for (const auto& word : words) {
    if (word.find('=') != std::string::npos && word.find('/') > word.find('=')) {
      overrides.push_back(word);
    } else if (file.empty()) {
      file = word;
    } else {
      throw Error(ExitCode::usage, fmt::format("expected one job file and overrides key=value, found '{}' and '{}'", file, word));
    }
  }
  return file.empty() ? config::default_job(overrides, catalogue) : config::load(file, overrides, catalogue, need_data);
}

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
    catalogue.preparations.push_back(entry);
  }
  return catalogue;
}

}  // namespace lockstep::cli
