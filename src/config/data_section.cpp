// data: train, validation, test, prepare, augment, normalize, cache, bad_samples, threads, depth.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <tuple>

#include "config/attribute_rules.hpp"
#include "config/list_rules.hpp"
#include "config/rule.hpp"
#include "config/scalar_rules.hpp"
#include "config/sections.hpp"
#include "lockstep/job.hpp"

namespace lockstep::config {

namespace {

// Rules for single values under `data`: class weights and folds.

constexpr std::int64_t kMostFolds = 1000;

class ClassWeightsRule final : public Rule {
 public:
  void read(const Cursor& at, void* into) const override {
    auto& weights = *static_cast<ClassWeightOptions*>(into);
    weights = {};
    weights.place = at.place();
    if (at.node().is(YamlNode::Kind::mapping)) return by_name_.rule->read(at, &weights.by_name);
    if (at.node().is(YamlNode::Kind::sequence)) return by_number_.rule->read(at, &weights.by_number);
    if (!at.node().is(YamlNode::Kind::scalar) || at.node().text != kBalanced) return at.expected(expected());
    weights.balanced = true;
  }
  Json write(const void* value) const override {
    const auto& weights = *static_cast<const ClassWeightOptions*>(value);
    if (weights.balanced) return kBalanced;
    return weights.by_number.empty() ? by_name_.rule->write(&weights.by_name)
                                     : by_number_.rule->write(&weights.by_number);
  }
  Json schema() const override {
    return {{"oneOf", Json::array({Json{{"enum", {kBalanced}}}, by_name_.rule->schema(), by_number_.rule->schema()})}};
  }
  std::string expected() const override { return "balanced, a map of classes and weights, or a list of weights"; }

 private:
  static constexpr const char* kBalanced = "balanced";
  Is<std::map<std::string, double>> by_name_ = map_of<double>(number().at_least(0), "classes and weights");
  Is<std::vector<double>> by_number_ = list_of<double>(number().at_least(0));
};

class FoldRule final : public Rule {
 public:
  void read(const Cursor& at, void* into) const override {
    Fold fold;
    const std::string& text = at.node().text;
    if (!at.node().is(YamlNode::Kind::scalar) || !parse(text, fold)) return at.expected(expected());
    if (fold.of < 2 || fold.of > kMostFolds || fold.number < 1 || fold.number > fold.of) {
      return at.expected(fmt::format("a fold such as '2 of 5', from 1 of 2 to {} of {}", kMostFolds, kMostFolds));
    }
    *static_cast<Fold*>(into) = fold;
  }
  Json write(const void* value) const override {
    const auto& fold = *static_cast<const Fold*>(value);
    return fmt::format("{} of {}", fold.number, fold.of);
  }
  Json schema() const override { return {{"type", "string"}, {"pattern", "^[1-9][0-9]* of [1-9][0-9]*$"}}; }
  std::string expected() const override { return "a fold such as '2 of 5'"; }

 private:
  static bool parse(const std::string& text, Fold& fold) {
    const auto middle = text.find(" of ");
    return middle != std::string::npos && read_number(text.substr(0, middle), fold.number) &&
           read_number(text.substr(middle + 4), fold.of);
  }
  static bool read_number(const std::string& text, std::int64_t& number) {
    const bool digits = !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
    if (digits) number = std::stoll(text);
    return digits;
  }
};

/// `balanced`, {cat: 2, dog: 0.5}, or [1, 2].
Is<ClassWeightOptions> class_weights_rule() {
  return {std::make_shared<ClassWeightsRule>()};
}

/// "2 of 5"
Is<Fold> fold_rule() {
  return {std::make_shared<FoldRule>()};
}

using Data = DataOptions;

Is<AugmentOptions> augment_section(const std::vector<NamedAttributes>& known) {
  Section<AugmentOptions> section;
  for (const auto& step : known) {
    section.option(step.name, &AugmentOptions::name, attributes_section(step, &AugmentOptions::attributes), step.doc);
  }
  return section.placed(&AugmentOptions::place);
}

/// A fraction or a fold of the training set, a list of its samples, or a separate source.
Is<Data> validation_section(const Catalogue& catalogue) {
  Section<Data> section;
  section.field("fraction", &Data::validation_fraction, number().above(0).below(1), "this share of the training set")
      .alternative([](Data&) {}, [](const Data& data) { return data.validation_fraction > 0; })
      .field("fold", &Data::validation_fold, fold_rule(), "one fold of k-fold cross-validation")
      .alternative([](Data&) {}, [](const Data& data) { return data.validation_fold.of > 0; })
      .field("list", &Data::validation_list, existing_file(), "a file with the training samples to take, one a line")
      .alternative([](Data&) {}, [](const Data& data) { return !data.validation_list.empty(); });
  for (const auto& format : source_formats(catalogue, /*evaluates=*/true)) {
    const auto choose = [format](Data& data) { format.choose(data.validation.emplace()); };
    const auto chosen = [format](const Data& data) { return data.validation && format.is_of(*data.validation); };
    section.part(format.name, member_of(&Data::validation, optional_of(format.settings)), format.doc)
        .alternative(choose, chosen);
  }
  return section
      .field("stratify", &Data::stratify, optional_of(boolean()),
             "take the share from each class; default for folds of classes")
      .check({"stratify"}, [](const Data& data, const Scope& scope) {
        if (!data.stratify || data.validation_fraction > 0 || data.validation_fold.of > 0) return;
        scope.problem("stratify", "expected it beside fraction or fold, which draw samples, found it without");
      });
}

/// Refuses what was meant for pixels from 0 to 255.
void require_unit_scale(const Data& data, const Scope& scope) {
  constexpr double kMostStd = 5;  // above the 0.5 of any pixels, but of some use
  for (const auto& [name, values, most] :
       {std::tuple("mean", &data.mean, 1.0), std::tuple("std", &data.stddev, kMostStd)}) {
    const auto fits = [most = most](double value) { return value >= 0 && value <= most; };
    if (std::all_of(values->begin(), values->end(), fits)) continue;
    std::vector<std::string> divided;
    for (const double value : *values) divided.push_back(fmt::format("{:.4g}", value / 255));
    scope.problem("normalize", fmt::format("expected the {} of pixels from 0, black, to 1, white, found {}; if it is "
                                           "of pixels up to 255, write `{}: [{}]`",
                                           name, fmt::join(*values, ", "), name, fmt::join(divided, ", ")));
  }
}

bool is_of_images(const SourceOptions& source) {
  switch (source.kind) {
    case SourceKind::digits:
    case SourceKind::images:
    case SourceKind::idx:
    case SourceKind::cifar:
    case SourceKind::csv:
    case SourceKind::packed:
      return true;
    default:
      return false;
  }
}

Is<Data> normalize_section() {
  const auto given = [](const Data& data) { return !data.mean.empty(); };
  return Section<Data>()
      .word(
          "auto", [](Data& data) { data.normalize = true; },
          [](const Data& data) { return data.normalize && data.mean.empty(); })
      .word(
          "never", [](Data& data) { data.normalize = false; }, [](const Data& data) { return !data.normalize; })
      .field("mean", &Data::mean, list_of<double>(number()), "by channel, where black is 0 and white is 1")
      .required()
      .written_if(given)
      .field("std", &Data::stddev, list_of<double>(number().above(0)),
             "standard deviation by channel, on the same scale")
      .required()
      .written_if(given)
      .check({"mean", "std"}, [](const Data& data, const Scope& scope) {
        if (scope.written("mean") && scope.written("std") && data.mean.size() != data.stddev.size()) {
          scope.problem("std", fmt::format("expected {} values, as many as in mean, found {}", data.mean.size(),
                                           data.stddev.size()));
        }
      });
}

Is<SoftLabelOptions> soft_labels_section() {
  using Options = SoftLabelOptions;
  return Section<Options>()
      .field("from", &Options::from, existing_file(), "a file of probabilities from `lockstep ensemble distill`")
      .required()
      .field("weight", &Options::weight, number().above(0).at_most(1), "of the probabilities; the label has the rest")
      .field("temperature", &Options::temperature, number().above(0),
             "of the probabilities: above 1 flatter, below 1 sharper")
      .shorthand("from");
}

Is<MixOptions> mix_section() {
  using Options = MixOptions;
  return Section<Options>()
      .field("mixup", &Options::mixup, number().above(0).at_most(4).word("never", 0),
             "alpha: a sample keeps a share from Beta(alpha, alpha), its partner gives the rest of all pixels")
      .field("cutmix", &Options::cutmix, number().above(0).at_most(4).word("never", 0),
             "alpha: a sample keeps such a share of its area, its partner gives a rectangle")
      .field("probability", &Options::probability, number().above(0).at_most(1),
             "that a sample is mixed; with mixup and cutmix, half for each")
      .check({"mixup", "cutmix"},
             [](const Options& options, const Scope& scope) {
               if (options.mixup == 0 && options.cutmix == 0)
                 scope.problem("mixup", "expected mixup, cutmix, or both, found neither");
             })
      .placed(&Options::place);
}

Is<Data> cache_section() {
  const Is<Data> memory = Section<Data>()
                              .field("budget", &Data::cache_bytes, bytes(), "of a rank, for decoded samples")
                              .shorthand("budget");
  return Section<Data>()
      .option(SampleCache::memory, &Data::cache, memory, "keep decoded samples in memory")
      .option(SampleCache::device, &Data::cache, Section<Data>(),
              "keep them on the GPU, and augment and normalize them there")
      .option(SampleCache::none, &Data::cache, Section<Data>(), "decode every time");
}

}  // namespace

Is<DataOptions> data_section(const Catalogue& catalogue) {
  return Section<Data>()
      .field("train", &Data::train, source_section(catalogue), "the training set")
      .required()
      .part("validation", validation_section(catalogue), "the set evaluated during training")
      .written_if([](const Data& data) { return data.has_validation(); })
      .field("split_seed", &Data::split_seed, optional_of<std::uint64_t>(number().at_least(0)),
             "chooses the samples of `validation: {fraction: ...}` and `{fold: ...}`; default: job.seed")
      .field("resample", &Data::resample, choice<Resample>(),
             "bootstrap: train on as many samples drawn with replacement, by job.seed")
      .field("soft_labels", &Data::soft_labels, optional_of(soft_labels_section()),
             "train on class probabilities mixed with the labels (distillation)")
      .field("class_weights", &Data::class_weights, optional_of(class_weights_rule()),
             "loss weights by class: a map by name (others 1), a list by number, or balanced: inverse to frequency")
      .field("test", &Data::test, optional_of(source_section(catalogue, /*evaluates=*/true)),
             "the set of `lockstep eval`")
      .field("prepare", &Data::prepare, list_of(augment_section(catalogue.preparations), {.least = 0}),
             "steps for every sample")
      .field("augment", &Data::augment, list_of(augment_section(catalogue.augmentations), {.least = 0}),
             "random steps for training samples")
      .field("mix", &Data::mix, optional_of(mix_section()),
             "mix training images, and their labels, with others of their micro-batch")
      .part("normalize", normalize_section(),
            "subtract the mean, divide by the standard deviation; auto: those of the training set")
      .check({"normalize"},
             [](const Data& data, const Scope& scope) {
               if (is_of_images(data.train)) require_unit_scale(data, scope);
             })
      .field("normalize_target", &Data::normalize_target, boolean(),
             "train numeric targets of tables and CSVs of images at mean 0, standard deviation 1; metrics and "
             "predictions keep their units")
      .written_if([](const Data& data) { return data.normalize_target; })
      .check({"normalize_target"},
             [](const Data& data, const Scope& scope) {
               const SourceKind kind = data.train.kind;
               if (!data.normalize_target || kind == SourceKind::own || kind == SourceKind::program) return;
               if (kind == SourceKind::table || (kind == SourceKind::csv && !data.train.target.empty())) return;
               scope.problem("normalize_target",
                             fmt::format("expected numbers to predict, of a table or of a csv with a target, found {}; "
                                         "leave it out",
                                         name_of(kind)));
             })
      .part("cache", cache_section(),
            "of decoded samples; with device: cuda, memory is the GPU's where they fit and can be augmented there, "
            "else the host's")
      .field("bad_samples", &Data::bad_samples, choice<BadWhenRead>(),
             "found in training: end the run, or take the next sample")
      .field("threads", &Data::threads, number().at_least(1).at_most(1024).word("auto", 0),
             "background threads that read and decode; auto: tuned while running")
      .field("depth", &Data::depth, number().at_least(1).at_most(4096).word("auto", 0),
             "micro-batches prepared ahead; auto: tuned while running");
}

}  // namespace lockstep::config
