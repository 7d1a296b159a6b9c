// data.train, data.validation, data.test: where samples come from.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/attribute_rules.hpp"
#include "config/files.hpp"
#include "config/list_rules.hpp"
#include "config/scalar_rules.hpp"
#include "config/sections.hpp"

namespace lockstep::config {
namespace {

using Source = SourceOptions;

/// A path, a list or a glob; sets `paths` (the files found) and `patterns` (what was written).
class FilesRule : public Rule {
 public:
  /// `into_archives`: a path may continue inside an archive file.
  FilesRule(std::string fetch, bool into_archives)
      : fetch_(std::move(fetch)), is_there_(into_archives ? exists_or_goes_into_a_file : file_exists) {}

  void read(const Cursor& at, void* into) const override {
    auto& source = *static_cast<Source*>(into);
    source.paths.clear();
    source.patterns.clear();
    if (!at.node().is(YamlNode::Kind::sequence)) return add(at, expected(), source);
    if (at.node().items.empty()) return at.problem("expected at least one path, found an empty list");
    for (std::size_t i = 0; i < at.node().items.size(); ++i) add(at.item(i), "a path or a glob", source);
  }
  Json write(const void* value) const override {
    const auto& source = *static_cast<const Source*>(value);
    const auto& patterns = source.patterns.empty() ? source.paths : source.patterns;
    if (patterns.empty()) return {};
    return patterns.size() == 1 ? Json(patterns[0]) : Json(patterns);
  }
  Json schema() const override {
    const Json path = {{"type", "string"}, {"minLength", 1}};
    return {{"oneOf", Json::array({path, Json{{"type", "array"}, {"items", path}, {"minItems", 1}}})}};
  }
  std::string expected() const override { return "a path, a list of paths or a glob"; }

 private:
  void add(const Cursor& at, const std::string& what, Source& source) const {
    const auto found = read_text(at, what);
    if (!found) return;
    const std::string path = resolve(at, *found, is_there_);
    source.patterns.push_back(path);
    const bool expand_it = at.session().need_data && is_pattern(path) && !file_exists(path);
    const auto paths = expand_it ? expand(path) : std::vector<std::string>{path};
    if (at.session().need_data && (paths.empty() || !is_there_(paths[0]))) {
      at.missing_data(fmt::format("expected data, found nothing at '{}'; {}give the place with {}=PATH", *found, fetch_,
                                  override_key(at.path())));
    }
    source.paths.insert(source.paths.end(), paths.begin(), paths.end());
  }
  std::string fetch_;
  bool (*is_there_)(const std::string&);
};

/// A name, or a path of a tokenizer.
class TokenizerRule : public Rule {
 public:
  explicit TokenizerRule(bool evaluates) : evaluates_(evaluates) {}

  void read(const Cursor& at, void* into) const override {
    auto& source = *static_cast<Source*>(into);
    const auto found = read_text(at, expected());
    if (!found) return;
    source.tokenizer_file.clear();
    if (evaluates_ && *found == kAuto) return source.tokenizer.reset();
    for (const Tokenizer tokenizer : {Tokenizer::characters, Tokenizer::bytes}) {
      if (*found == name_of(tokenizer)) return void(source.tokenizer = tokenizer);
    }
    source.tokenizer_file = resolve(at, *found);
    if (at.session().need_data && !file_exists(source.tokenizer_file)) {
      at.problem(fmt::format("expected characters, bytes or a tokenizer's file, found nothing at '{}'; check the path",
                             *found));
    }
  }
  Json write(const void* value) const override {
    const auto& source = *static_cast<const Source*>(value);
    if (!source.tokenizer_file.empty()) return source.tokenizer_file;
    if (evaluates_ && !source.tokenizer) return kAuto;
    return std::string(name_of(source.tokenizer.value_or(Tokenizer::characters)));
  }
  Json schema() const override { return {{"type", "string"}, {"minLength", 1}}; }
  std::string expected() const override {
    return fmt::format("{}characters, bytes or the path of a tokenizer.json", evaluates_ ? "auto, " : "");
  }

 private:
  static constexpr const char* kAuto = "auto";
  bool evaluates_;
};

Is<Source> files(const std::string& fetched_as) {
  return {std::make_shared<FilesRule>(
      fetched_as.empty() ? "" : fmt::format("get it with `lockstep data fetch {}`, or ", fetched_as),
      fetched_as == "cifar10")};
}

Section<Source> from_files(const std::string& fetched_as = "") {
  return Section<Source>()
      .initially([](Source& source) { source.count = 0; })
      .part("path", files(fetched_as), "a file, a folder, a glob or a list, read as one set")
      .required()
      .shorthand("path")
      .placed(&Source::place);
}

Section<Source> samples(const std::string& fetched_as = "") {
  return from_files(fetched_as)
      .field("count", &Source::count, number().at_least(1).word("all", 0),
             "samples to take, spread evenly over the set")
      .field("bad_samples", &Source::bad_samples, choice<BadWhenIndexed>(), "found by indexing");
}

/// One of Source::attributes.
Is<Source> setting(const AttributeSpec& spec) {
  return member_of(&Source::attributes, attribute(spec));
}

Is<std::vector<std::string>> class_names() {
  return list_of<std::string>(text(), {.unique = true});
}

/// With the order of the classes, for what has a class for each sample.
Section<Source> classified(Section<Source> section) {
  return section
      .field("classes", &Source::classes, class_names(),
             "class names in the order of the model's outputs; default: the data's, by name")
      .written_if([](const Source& source) { return !source.classes.empty(); });
}

/// With a file of weights, for what has no column for them.
Section<Source> weighted(Section<Source> section) {
  return section.field("weights", &Source::weights, existing_file(), "a file of loss weights, one per line");
}

/// Folders and archives that hold a training set and a test set.
Section<Source> parted(const std::string& fetched_as) {
  return weighted(classified(samples(fetched_as)))
      .field("part", &Source::part, choice<SourcePart>(),
             "of a folder or archive; auto: test under validation and test, else train");
}

/// With the length of a sample in tokens. `tokenizer`: the usual one.
Section<Source> of_tokens(Section<Source> section, std::int64_t context, Tokenizer tokenizer, bool evaluates,
                          const std::string& doc) {
  section.initially([=](Source& source) {
    source.count = 0;
    source.context = evaluates ? 0 : context;
    source.tokenizer = evaluates ? std::nullopt : std::optional(tokenizer);
  });
  if (!evaluates) return section.field("context", &Source::context, number().at_least(1), doc);
  return section.field("context", &Source::context, number().at_least(1).word("auto", 0),
                       doc + "; auto: as in training");
}

Section<Source> windows(bool evaluates) {
  return of_tokens(from_files(), 64, Tokenizer::characters, evaluates, "length of a window, in tokens")
      .field("masked", &Source::masked, number().above(0).below(1).word("never", 0),
             "hide and predict this share of a window's tokens (BERT); never: predict the next token")
      .written_if([](const Source& source) { return source.masked > 0; })
      .field("masked_span", &Source::masked_span, number().at_least(1),
             "mean number of neighboring tokens hidden together")
      .written_if([](const Source& source) { return source.masked > 0; })
      .part("mask_token",
            setting({.name = "mask_token", .kind = AttributeKind::integer, .doc = "", .optional = true, .minimum = 0}),
            "number of the hiding token; default: the tokenizer's [MASK] or <mask>, else one more at the end of the "
            "vocabulary")
      .check({"masked", "mask_token"},
             [](const Source& source, const Scope& scope) {
               if (source.masked > 0 || !source.attributes.has("mask_token")) return;
               scope.problem("mask_token", "expected the share of tokens that are hidden, found none; add `masked`");
             })
      .check({"masked", "masked_span"}, [](const Source& source, const Scope& scope) {
        if (source.masked > 0 || source.masked_span == 1) return;
        scope.problem("masked_span", "expected the share of tokens that are hidden in spans, found none; add `masked`");
      });
}

/// A setting that one reader knows.
Section<Source> with_word(Section<Source> section, const std::string& name, const std::vector<std::string>& words,
                          const std::string& doc) {
  const AttributeSpec spec{.name = name, .kind = AttributeKind::text, .choices = words};
  return section.part(name, member_of(&Source::attributes, attribute(spec)), doc);
}

Section<Source> in_class_folders(Section<Source> section) {
  return with_word(std::move(section), "class_folder", {"innermost", "outermost"},
                   "of nested folders, the class; default: the innermost, unless folders of one name are in several");
}

Section<Source> tokens(bool evaluates) {
  return with_word(windows(evaluates), "dtype", {"uint16", "uint32", "int32", "int64"},
                   "little-endian; default: uint16, or as the tokenizer beside the file");
}

Section<Source> texts(bool evaluates) {
  return of_tokens(in_class_folders(weighted(classified(samples()))), 128, Tokenizer::bytes, evaluates,
                   "most tokens of a text; longer ones are cut off")
      .field("text", &Source::text_column, text(), "column or entry of the text")
      .field("label", &Source::label_column, text(), "column or entry of the class");
}

/// With the reader's own attributes. Where none must be given, a bare value is the path.
Section<Source> own(const NamedAttributes& reader) {
  Section<Source> section = attributes_section(reader, &Source::attributes);
  section.part("path", files(""), "a file, a folder, a glob or a list, read as one set").required();
  const auto& attributes = reader.attributes;
  if (std::all_of(attributes.begin(), attributes.end(), [](const auto& a) { return a.default_value || a.optional; })) {
    section.shorthand("path");
  }
  return weighted(section
                      .field("count", &Source::count, number().at_least(1).word("all", 0),
                             "samples to take, spread evenly over the set")
                      .placed(&Source::place));
}

Section<Source> digits() {
  return Section<Source>()
      .initially([](Source& source) { source.count = 12000; })
      .field("count", &Source::count, number().at_least(1), "how many samples")
      .field("first", &Source::first, number().at_least(0), "index of the first; other indices are other samples")
      .field("pairs", &Source::pairs, boolean(),
             "two digits a sample, left and right; the label is whether they are equal")
      .field("masks", &Source::masks, boolean(), "beside each image a mask: 1 where the ink is, else 0")
      .written_if([](const Source& source) { return source.masks; })
      .field("same", &Source::same, boolean(), "with pairs: both are equal, and the label is the digit")
      .written_if([](const Source& source) { return source.same; })
      .field("triplets", &Source::triplets, boolean(), "three digits a sample: anchor, positive (equal), negative")
      .written_if([](const Source& source) { return source.triplets; })
      .shorthand("count")
      .placed(&Source::place);
}

Is<std::vector<std::string>> column_names() {
  return list_of<std::string>(text(), {.single = true, .unique = true});
}

Section<Source> image_table() {
  return weighted(samples())
      .field("target", &Source::target, column_names(),
             "columns of numbers to predict, instead of the class in the column label")
      .written_if([](const Source& source) { return !source.target.empty(); })
      .field("mask", &Source::mask, text(), "column of masks: PNG files with class numbers as pixels")
      .written_if([](const Source& source) { return !source.mask.empty(); })
      .field(
          "classes", &Source::classes, class_names(),
          "class names in the order of a mask's pixels from 0 on, or as `values`; without `mask`, of the column label")
      .written_if([](const Source& source) { return !source.classes.empty(); })
      .part("values",
            setting({.name = "values",
                     .kind = AttributeKind::integers,
                     .doc = "",
                     .optional = true,
                     .minimum = 0,
                     .maximum = 255}),
            "of a mask: each class's pixel value, as [0, 255]")
      .written_if([](const Source& source) { return !source.mask.empty(); })
      .part("ignored",
            setting({.name = "ignored",
                     .kind = AttributeKind::integer,
                     .doc = "",
                     .optional = true,
                     .minimum = -1,
                     .maximum = 255}),
            "of a mask: the pixel value left out of loss and metrics, unless in `values`; -1: none; default 255")
      .written_if([](const Source& source) { return !source.mask.empty(); })
      .check({"mask", "classes"},
             [](const Source& source, const Scope& scope) {
               if (source.mask.empty()) return;
               if (source.classes.empty())
                 scope.problem("mask", "expected the classes of the masks, found none; add `classes`");
               if (source.classes.size() > 255) {
                 scope.problem("classes",
                               fmt::format("expected at most 255 of a mask, whose pixels are bytes, found {}",
                                           source.classes.size()));
               }
             })
      .check({"mask", "classes", "values", "ignored"}, [](const Source& source, const Scope& scope) {
        for (const char* const key : {"values", "ignored"}) {
          if (source.mask.empty() && source.attributes.has(key))
            scope.problem(key, "expected it beside the column of masks, found none; add `mask`");
        }
        if (source.mask.empty() || !source.attributes.has("values")) return;
        auto values = source.attributes.integers("values");
        std::sort(values.begin(), values.end());
        const bool twice = std::adjacent_find(values.begin(), values.end()) != values.end();
        if (!twice && values.size() == source.classes.size()) return;
        scope.problem("values", fmt::format("expected {} different pixel values, one for each of `classes`, found {}",
                                            source.classes.size(), fmt::join(values, ", ")));
      });
}

/// The next rows, by their number, or some of them.
class HorizonRule : public Rule {
 public:
  void read(const Cursor& at, void* into) const override {
    auto& horizon = static_cast<Source*>(into)->horizon;
    if (at.node().is(YamlNode::Kind::sequence)) {
      list_.rule->read(at, &horizon);
      if (std::is_sorted(horizon.begin(), horizon.end())) return;
      return at.problem("expected rows ahead in ascending order");
    }
    std::int64_t rows = 0;
    number_.rule->read(at, &rows);
    horizon.clear();
    for (std::int64_t ahead = 1; ahead <= rows; ++ahead) horizon.push_back(ahead);
  }
  Json write(const void* value) const override {
    const auto& horizon = static_cast<const Source*>(value)->horizon;
    if (horizon.empty()) return {};
    return horizon.back() == std::ssize(horizon) ? Json(horizon.back()) : Json(horizon);
  }
  Json schema() const override { return {{"oneOf", Json::array({number_.rule->schema(), list_.rule->schema()})}}; }
  std::string expected() const override { return "a number of rows, or a list of such"; }

 private:
  static constexpr double kFarthest = 100'000;
  Is<std::int64_t> number_ = number().at_least(1).at_most(kFarthest);
  Is<std::vector<std::int64_t>> list_ = list_of<std::int64_t>(number_, {.unique = true});
};

/// With what makes a time series of a table.
Section<Source> series(Section<Source> section) {
  const auto is_series = [](const Source& source) { return source.window > 0; };
  return section
      .initially([](Source& source) {
        source.count = 0;
        source.horizon = {1};
      })
      .field("window", &Source::window, number().at_least(1).word("never", 0),
             "consecutive rows of a sample of a time series; never: a row")
      .written_if(is_series)
      .part("horizon", {std::make_shared<HorizonRule>()},
            "with window: rows behind it to predict, default 1; or which, as [24] for the 24th alone")
      .written_if(is_series)
      .field("series", &Source::series, text(), "with window: the column that tells series apart")
      .written_if([](const Source& source) { return !source.series.empty(); })
      .field("time", &Source::time, text(),
             "with window: the column of times, in whose order rows must be, and are split")
      .written_if([](const Source& source) { return !source.time.empty(); })
      .check({"window"},
             [](const Source& source, const Scope& scope) {
               for (const char* const key : {"horizon", "series", "time"}) {
                 if (source.window == 0 && scope.written(key))
                   scope.problem(key, "expected it beside the number of rows of a sample, found none; add `window`");
               }
             })
      .check({"window", "count", "weight"}, [](const Source& source, const Scope& scope) {
        if (source.window == 0) return;
        if (source.count > 0)
          scope.problem("count", "expected all rows of a time series, found some; leave out `count`");
        if (!source.weight.empty())
          scope.problem("weight", "expected windows that count alike, found a weight for each row; leave out `weight`");
      });
}

/// The column to predict; of sets that are evaluated, that of the training set if they name none.
Section<Source> with_target(Section<Source> section, bool evaluates) {
  section.field("target", &Source::target, column_names(),
                "column to predict, or a pattern (price_*); several as numbers" +
                    std::string(evaluates ? "; without it as in training" : ""));
  return evaluates ? section : section.required();
}

Section<Source> table(bool evaluates) {
  return series(
      with_target(classified(samples()), evaluates)
          .field("features", &Source::features, column_names(),
                 "columns to predict from, or patterns (pixel*); default: all others")
          .field("except", &Source::except, column_names(), "columns that are no features, or patterns")
          .written_if([](const Source& source) { return !source.except.empty(); })
          .field("unknown", &Source::unknown, choice<UnknownCategory>(),
                 "a category that the training set lacks; ignore: it is none of the others")
          .written_if([](const Source& source) { return source.unknown != UnknownCategory::refuse; })
          .field("categorical", &Source::categorical, column_names(), "columns of numbers that are names, or patterns")
          .field("weight", &Source::weight, text(), "column of loss weights for training; it is no feature"));
}

}  // namespace

std::vector<SourceFormat> source_formats(const Catalogue& catalogue, bool evaluates) {
  Section<Source> idx = parted("mnist");
  idx.field("labels", &Source::labels, existing_file(), "the file of labels, if not beside the images");
  Section<Source> text_windows = windows(evaluates), labelled_texts = texts(evaluates);
  for (Section<Source>* section : {&text_windows, &labelled_texts}) {
    section->part("tokenizer", Is<Source>{std::make_shared<TokenizerRule>(evaluates)},
                  "characters, bytes, tokenizer.json, a folder that holds one, or vocab.json and merges.txt" +
                      std::string(evaluates ? "; auto: as in training" : ""));
  }
  std::vector<SourceFormat> formats;
  const auto add = [&](SourceKind kind, const std::string& doc, const Is<Source>& settings) {
    formats.push_back({std::string(name_of(kind)), kind, doc, settings});
  };
  add(SourceKind::digits, "synthetic handwritten-like digits, 28 x 28", digits());
  add(SourceKind::images, "JPEG and PNG files in class folders, or .tar, .tar.gz, .tar.zst of such",
      in_class_folders(weighted(classified(samples()))));
  add(SourceKind::idx, "MNIST's format, also .gz", idx);
  add(SourceKind::cifar, "CIFAR's binary format, or its official archive", parted("cifar10"));
  add(SourceKind::text, "plain text, in windows", text_windows);
  add(SourceKind::texts, "classified texts: files in class folders, a CSV, .parquet or .jsonl", labelled_texts);
  add(SourceKind::tokens, "bare token numbers, in windows", tokens(evaluates));
  add(SourceKind::csv, "a table that names the files and labels of samples", image_table());
  add(SourceKind::table, "a CSV or Parquet file, some columns predicted from the others", table(evaluates));
  add(SourceKind::packed, "output of `lockstep data pack`", weighted(classified(samples())));
  add(SourceKind::program, "samples of the program that calls train_job()", Section<Source>().placed(&Source::place));
  for (const auto& reader : catalogue.readers)
    formats.push_back({reader.name, SourceKind::own, reader.doc, own(reader)});
  return formats;
}

Is<SourceOptions> source_section(const Catalogue& catalogue, bool evaluates) {
  Section<Source> section;
  for (const auto& format : source_formats(catalogue, evaluates)) {
    section.part(format.name, format.settings, format.doc)
        .alternative([format](Source& source) { format.choose(source); },
                     [format](const Source& source) { return format.is_of(source); });
  }
  return section;
}

}  // namespace lockstep::config
