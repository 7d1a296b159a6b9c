// A small catalogue for the tests: a few ops, models, losses and augmentation steps, with every kind of attribute.
#pragma once

#include "config/config.hpp"

namespace lockstep::config {

inline AttributeSpec integer_attribute(const std::string& name, std::optional<std::int64_t> default_value,
                                       double minimum) {
  AttributeSpec spec{.name = name, .kind = AttributeKind::integer, .doc = name};
  if (default_value) spec.default_value = Attribute(*default_value);
  spec.minimum = minimum;
  return spec;
}

inline AttributeSpec number_attribute(const std::string& name, double default_value, double minimum, double maximum) {
  AttributeSpec spec{.name = name, .kind = AttributeKind::number, .doc = name};
  spec.default_value = Attribute(default_value);
  spec.minimum = minimum;
  spec.maximum = maximum;
  return spec;
}

inline AttributeSpec optional_attribute(const std::string& name, AttributeKind kind = AttributeKind::integer) {
  AttributeSpec spec{.name = name, .kind = kind, .doc = name};
  spec.optional = true;
  if (kind == AttributeKind::integer) spec.minimum = 1;
  return spec;
}

inline AttributeSpec ignored_index() {
  return {.name = "ignored_index",
          .kind = AttributeKind::integer,
          .doc = "ignored_index",
          .optional = true,
          .minimum = -1e9};
}

inline AttributeSpec choice_attribute(const std::string& name, std::vector<std::string> choices) {
  AttributeSpec spec{.name = name, .kind = AttributeKind::text, .doc = name};
  spec.default_value = Attribute(choices.front());
  spec.choices = std::move(choices);
  return spec;
}

inline AttributeSpec sizes_attribute(const std::string& name, std::optional<std::vector<std::int64_t>> default_value) {
  AttributeSpec spec{.name = name, .kind = AttributeKind::integers, .doc = name};
  if (default_value) spec.default_value = Attribute(*default_value);
  spec.minimum = 1;
  return spec;
}

inline AttributeSpec flag_attribute(const std::string& name, bool default_value) {
  AttributeSpec spec{.name = name, .kind = AttributeKind::boolean, .doc = name};
  spec.default_value = Attribute(default_value);
  return spec;
}

inline AttributeSpec padding_attribute() {
  AttributeSpec spec{.name = "padding", .kind = AttributeKind::integers, .doc = "padding"};
  spec.default_value = Attribute(std::string("same"));
  spec.choices = {"same", "valid"};
  spec.minimum = 0;
  return spec;
}

inline NamedAttributes entry(const std::string& name, std::vector<AttributeSpec> attributes = {},
                             const std::string& shorthand = "") {
  return {.name = name, .doc = "the " + name, .shorthand = shorthand, .attributes = std::move(attributes)};
}

inline NamedAttributes joining(const std::string& name) {
  NamedAttributes join = entry(name);
  join.takes_inputs = true;
  return join;
}

inline NamedAttributes only_on_cpus(const std::string& name) {
  NamedAttributes optimizer = entry(name);
  optimizer.on_gpus = false;
  return optimizer;
}

inline AttributeSpec below_one(AttributeSpec spec) {
  spec.below_maximum = true;
  return spec;
}

inline NamedAttributes sgd_entry() {
  NamedAttributes sgd =
      entry("sgd", {below_one(number_attribute("momentum", 0, 0, 1)), flag_attribute("nesterov", false),
                    number_attribute("weight_decay", 0, 0, 1e9), flag_attribute("decay_all", false)});
  sgd.checks = {{{"nesterov", "momentum"}, [](const Attributes& given) -> std::string {
                   if (!given.boolean("nesterov") || given.number("momentum") > 0) return "";
                   return "expected false, since momentum is 0, found true; set momentum, say to 0.9";
                 }}};
  return sgd;
}

inline NamedAttributes adam_entry(const std::string& name, double weight_decay) {
  AttributeSpec epsilon = number_attribute("epsilon", 1e-8, 0, 1);
  epsilon.above_minimum = true;
  return entry(name,
               {below_one(number_attribute("beta1", 0.9, 0, 1)), below_one(number_attribute("beta2", 0.999, 0, 1)),
                epsilon, number_attribute("weight_decay", weight_decay, 0, 1e9), flag_attribute("decay_all", false)});
}

inline std::string rising(const Attributes& given) {
  const auto& spans = given.spans("milestones");
  for (std::size_t i = 1; i < spans.size(); ++i) {
    if (spans[i - 1].epochs != spans[i].epochs || spans[i - 1].amount < spans[i].amount) continue;
    return "expected rising milestones, found '" + to_string(spans[i - 1]) + "' before '" + to_string(spans[i]) + "'";
  }
  return "";
}

inline std::vector<NamedAttributes> schedule_entries() {
  const AttributeSpec milestones{.name = "milestones", .kind = AttributeKind::spans, .doc = "milestones"};
  const AttributeSpec final = number_attribute("final", 0, 0, 1e9);
  NamedAttributes steps = entry("steps", {milestones, number_attribute("factor", 0.1, 0, 1e9)});
  steps.checks = {{{"milestones"}, rising}};
  NamedAttributes plateau =
      entry("plateau", {optional_attribute("metric", AttributeKind::text), number_attribute("factor", 0.1, 0, 1),
                        integer_attribute("patience", 10, 0), number_attribute("min_rate", 0, 0, 1e9)});
  plateau.attributes[0].optional = false;
  plateau.attributes[0].default_value = std::string("loss");
  return {entry("constant"),
          steps,
          plateau,
          entry("linear", {final}),
          entry("cosine", {final}),
          entry("one_cycle"),
          entry("wsd", {number_attribute("decay", 0.1, 0, 1)})};
}

inline Catalogue test_catalogue() {
  Catalogue known;
  known.layers = {
      entry("relu"),
      entry("flatten"),
      entry("conv", {integer_attribute("filters", std::nullopt, 1), sizes_attribute("kernel", std::nullopt),
                     sizes_attribute("stride", std::vector<std::int64_t>{1}), padding_attribute(),
                     flag_attribute("bias", true)}),
      entry("max_pool", {sizes_attribute("kernel", std::vector<std::int64_t>{2})}, "kernel"),
      entry("global_pool", {choice_attribute("kind", {"average", "max"})}, "kind"),
      entry("batch_norm", {number_attribute("momentum", 0.1, 0, 1)}),
      entry("dropout", {number_attribute("rate", 0.5, 0, 1)}, "rate"),
      entry("linear",
            {integer_attribute("features", std::nullopt, 1), flag_attribute("bias", true),
             optional_attribute("tied", AttributeKind::text)},
            "features"),
      entry("embedding", {integer_attribute("vocabulary", std::nullopt, 1), integer_attribute("width", std::nullopt, 1),
                          number_attribute("std", 0.02, 0, 1e9)}),
      entry("lstm", {integer_attribute("features", std::nullopt, 1)}, "features"),
      entry("gru", {integer_attribute("features", std::nullopt, 1)}, "features"),
      entry("reshape", {sizes_attribute("shape", std::nullopt)}, "shape"),
      entry("slice",
            {integer_attribute("axis", -1, -8), integer_attribute("begin", 0, -1e9), optional_attribute("end")}),
      entry("scale", {number_attribute("factor", 1, -1e9, 1e9)}),
      joining("add"),
      joining("concat"),
      joining("mul"),
      joining("last"),
      joining("reverse"),
  };
  known.layers[5].batch_statistics = true;
  known.models = {
      entry("gpt",
            {choice_attribute("size", {"tiny", "small", "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"}),
             optional_attribute("layers"), optional_attribute("heads"), optional_attribute("width"),
             number_attribute("dropout", 0, 0, 1), flag_attribute("bias", true), optional_attribute("vocabulary")},
            "size"),
      entry("lenet"),
      entry("llama", {integer_attribute("layers", 4, 1), integer_attribute("heads", 4, 1),
                      integer_attribute("kv_heads", 4, 1), integer_attribute("width", 128, 1)}),
      entry("mlp",
            {sizes_attribute("hidden", std::vector<std::int64_t>{64}), number_attribute("dropout", 0, 0, 1),
             optional_attribute("classes")},
            "hidden"),
      entry("resnet", {integer_attribute("depth", 20, 18), optional_attribute("classes")}),
  };
  known.models.back().batch_statistics = true;
  known.models.push_back(
      entry("vit",
            {choice_attribute("size", {"tiny", "small"}), integer_attribute("patch", 4, 1),
             integer_attribute("layers", 12, 1), integer_attribute("heads", 3, 1), integer_attribute("width", 192, 1)},
            "size"));
  known.models.push_back(entry("autoencoder", {integer_attribute("code", 32, 1), integer_attribute("width", 16, 1)}));
  known.models.push_back(entry("mobilenet", {number_attribute("width", 1, 0.1, 4), flag_attribute("small", false)}));
  known.models.push_back(
      entry("lstm",
            {choice_attribute("size", {"tiny", "small", "medium", "large"}), optional_attribute("layers"),
             optional_attribute("width"), number_attribute("dropout", 0, 0, 1), flag_attribute("tied", false)},
            "size"));
  known.models.push_back(entry("unet", {integer_attribute("width", 64, 1), integer_attribute("depth", 4, 1),
                                        integer_attribute("outputs", 1, 1)}));
  known.models.push_back(entry("bert",
                               {choice_attribute("size", {"tiny", "base", "large"}), optional_attribute("layers"),
                                optional_attribute("heads"), optional_attribute("width")},
                               "size"));
  known.losses = {entry("cross_entropy", {number_attribute("label_smoothing", 0, 0, 1), ignored_index()}),
                  entry("mean_squared_error"),
                  entry("huber", {number_attribute("delta", 1, 0, 1e9)}, "delta"),
                  entry("binary_cross_entropy", {number_attribute("positive_weight", 1, 0, 1e9)}),
                  entry("contrastive", {number_attribute("temperature", 0.1, 0, 1e9)}, "temperature"),
                  entry("triplet", {number_attribute("margin", 1, 0, 1e9)}, "margin")};
  known.metrics = {"accuracy",   "binary_accuracy", "f1", "iou",    "macro_f1", "mae", "mean_iou",
                   "perplexity", "precision",       "r2", "recall", "rmse",     "top5"};
  known.optimizers = {sgd_entry(), adam_entry("adam", 0), adam_entry("adamw", 0.01), adam_entry("lamb", 0.01),
                      only_on_cpus("own")};
  for (std::size_t i = 1; i < known.optimizers.size(); ++i) known.optimizers[i].learning_rate = 0.001;
  known.schedules = schedule_entries();
  known.augmentations = {
      entry("flip"), entry("crop", {integer_attribute("padding", 4, 0)}, "padding"),
      entry("rotate", {number_attribute("degrees", 15, 0, 180)}, "degrees"),
      entry("cutout", {integer_attribute("size", 8, 1)}, "size"),
      entry("erase", {number_attribute("probability", 0.5, 0, 1), number_attribute("max_area", 0.33, 0, 1)})};
  known.preparations = {entry("resize", {sizes_attribute("size", std::nullopt)}, "size"),
                        entry("center_crop", {sizes_attribute("size", std::nullopt)}, "size")};
  return known;
}

}  // namespace lockstep::config
