// lockstep data info: what a job's data sets, or a single source, hold; optionally a contact sheet of images.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "cli/data_words.hpp"
#include "core/cache_directory.hpp"
#include "data/contact_sheet.hpp"
#include "data/input/prepared_data.hpp"
#include "data/look_alikes.hpp"
#include "data/readers/row_windows.hpp"
#include "data/sample_identities.hpp"
#include "data/statistics.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/text.hpp"

namespace lockstep::cli {

namespace {

constexpr std::size_t kMaxLines = 20;

struct InfoArguments {
  std::vector<std::string> words;
  std::string picture;
  bool all = false;
};

void print_line(const std::string& name, const std::string& value) {
  fmt::print("  {:<12} {}\n", name, value);
}

std::string kind_name(Feature::Kind kind) {
  switch (kind) {
    case Feature::Kind::image:
      return "image";
    case Feature::Kind::label:
      return "label";
    case Feature::Kind::tokens:
      return "tokens";
    case Feature::Kind::tensor:
      return "tensor";
    case Feature::Kind::columns:
      return "columns";
    case Feature::Kind::mask:
      return "mask";
    case Feature::Kind::weight:
      return "weight";
  }
  return "";
}

std::string shape_text(const Shape& shape) {
  std::vector<std::string> parts;
  for (const auto size : shape) parts.push_back(size < 0 ? "any" : fmt::format("{}", size));
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

/// `weights`: by class, or empty.
void print_classes(const DataSetInfo& info, const std::vector<double>& weights, bool all) {
  if (info.class_names.empty()) return;
  print_line("classes", fmt::format("{}", info.class_names.size()));
  const std::size_t shown = all ? info.class_names.size() : std::min(info.class_names.size(), kMaxLines);
  for (std::size_t i = 0; i < shown; ++i) {
    const std::int64_t count = i < info.class_counts.size() ? info.class_counts[i] : 0;
    fmt::print("  {:<12} {:>9}  {}{}\n", "", telemetry::grouped(count), info.class_names[i],
               weights.empty() ? "" : fmt::format(", weight {:.6g}", weights.at(i)));
  }
  if (shown < info.class_names.size()) {
    print_line("", fmt::format("and {} more; --all prints them", info.class_names.size() - shown));
  }
}

void print_skipped(const DataSetInfo& info, bool all) {
  print_line("skipped", info.skipped.empty() ? "none" : telemetry::grouped(std::ssize(info.skipped)));
  const std::size_t shown = all ? info.skipped.size() : std::min(info.skipped.size(), kMaxLines);
  for (std::size_t i = 0; i < shown; ++i) print_line("", info.skipped[i]);
  if (shown < info.skipped.size()) {
    print_line("", fmt::format("and {} more; --all prints them", info.skipped.size() - shown));
  }
}

std::string date_of(double days) {
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(std::llround(std::floor(days))))};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()));
}

/// Of a table: what each column was taken for.
void print_table_columns(const DataSetInfo& info, const data::ChannelStatistics& statistics, bool all) {
  std::size_t element = 0;
  for (const auto& column : info.columns) {
    std::string text;
    if (column.categories.empty()) {
      text = column.dates ? "dates" : "numbers";
      if (!statistics.mean.empty() && column.dates) {
        text += fmt::format(", mean {}, std {:.4g} days", date_of(statistics.mean.at(element)),
                            statistics.stddev.at(element));
      } else if (!statistics.mean.empty()) {
        text += fmt::format(", mean {:.4g}, std {:.4g}", statistics.mean.at(element), statistics.stddev.at(element));
      }
    } else {
      const std::size_t shown = all ? column.categories.size() : std::min(column.categories.size(), kMaxLines);
      text = fmt::format("{} categories: {}{}", column.categories.size(),
                         fmt::join(column.categories.begin(), column.categories.begin() + shown, ", "),
                         shown < column.categories.size() ? ", ..." : "");
    }
    print_line("column", fmt::format("{}: {}{}", column.name, text, column.missing ? "; some missing" : ""));
    element += column.elements();
  }
}

void print_statistics(const data::ChannelStatistics& statistics) {
  if (statistics.mean.empty()) return;
  print_line("mean", fmt::format("{:.4f}  (by channel, of 0 to 1)", fmt::join(statistics.mean, " ")));
  print_line("std", fmt::format("{:.4f}", fmt::join(statistics.stddev, " ")));
}

void print_index(const std::string& title, const std::vector<input::IndexReport>& indexes) {
  for (const auto& index : indexes) {
    if (index.set != title) continue;
    print_line("index", index.was_cached     ? "from the cache, " + index.file
                        : index.file.empty() ? "built now, not cached: " + index.not_kept
                                             : "built now, cached in " + index.file);
  }
}

/// Of texts that are padded: how long they are.
void print_lengths(const DataSet& set) {
  const auto& features = set.info().features;
  const auto found = std::find_if(features.begin(), features.end(), [](const Feature& f) { return f.name == kLength; });
  if (found == features.end()) return;
  std::vector<std::int32_t> lengths;
  Sample sample;
  for (std::int64_t id = 0; id < set.size(); ++id) {
    set.read(id, sample);
    lengths.push_back(sample[found - features.begin()].tensor.as<std::int32_t>()[0]);
  }
  std::sort(lengths.begin(), lengths.end());
  print_line("lengths", fmt::format("{} to {} tokens, half of them up to {}", lengths.front(), lengths.back(),
                                    lengths[(lengths.size() - 1) / 2]));
}

void print_set(const std::string& title, const DataSet& set, const data::ChannelStatistics& statistics,
               const std::vector<input::IndexReport>& indexes, bool all, const std::vector<double>& weights = {},
               const std::string& shared = "") {
  const DataSetInfo& info = set.info();
  fmt::print("{}\n", title);
  print_line("format", info.format);
  if (!info.source.empty()) print_line("source", info.source);
  print_line("samples", telemetry::grouped(set.size()));
  for (const Feature& feature : info.features) {
    print_line("feature", fmt::format("{} ({}): {} {}", feature.name, kind_name(feature.kind),
                                      name_of(feature.spec.dtype), shape_text(feature.spec.shape)));
  }
  if (info.window.rows > 0) print_line("window", data::window_text(info.window));
  print_classes(info, weights, all);
  if (info.vocabulary > 0) print_line("vocabulary", telemetry::grouped(info.vocabulary));
  print_lengths(set);
  if (info.columns.empty()) {
    print_statistics(statistics);
  } else {
    print_table_columns(info, statistics, all);
  }
  print_skipped(info, all);
  for (const auto& warning : info.warnings) print_line("warning", warning);
  if (title != "validation" && title != "test") {  // which have the names of the training set
    for (const auto& warning : data::look_alikes(info)) print_line("warning", warning);
    if (const auto warning = input::lone_class(info); !warning.empty()) print_line("warning", warning);
  }
  if (!shared.empty()) print_line("warning", shared);
  print_index(title, indexes);
  print_line("bytes read", telemetry::grouped(set.bytes_read()));
  print_line("digest", info.digest);
}

void draw(const std::string& path, const DataSet& set, const data::Pipeline& pipeline) {
  data::write_contact_sheet(path, set, pipeline);
  fmt::print("wrote {}\n", path);
}

void info_of_source(const InfoArguments& arguments, const Job& job, const Registries& registries) {
  input::SourceIndexes indexes(cache_directory(), registries.readers);
  const auto set = indexes.open("source", job.data.train, nullptr);
  const auto statistics = data::channel_statistics(*set, {.notes = &indexes.notes("source")});
  print_set("source", *set, statistics, indexes.keep(), arguments.all);
  if (!arguments.picture.empty()) draw(arguments.picture, *set, {set->info().features, {}, registries.augmentations});
}

void info_of_job(const InfoArguments& arguments, const Job& job, const Registries& registries) {
  const auto data =
      input::learn(job.data, job.seed, job.batch_size, registries, {}, {.with_test = true, .with_statistics = true});
  const auto print = [&](const std::string& name, const DataSet& set) {
    const bool train = &set == data.train.get();
    print_set(name, set, data.statistics.at(name), data.indexes, arguments.all,
              train ? data.class_weights : std::vector<double>(), train ? "" : data::shared_samples(set, *data.train));
  };
  print("train", *data.train);
  if (data.validation) print("validation", *data.validation);
  if (data.test) print("test", *data.test);
  if (!arguments.picture.empty()) {
    draw(arguments.picture, *data.train, data.pipeline(*data.train, true));
  }
}

int info(const InfoArguments& arguments) {
  const DataWords words = read_data_words(arguments.words);
  const auto print = words.is_job ? info_of_job : info_of_source;
  print(arguments, words.job, words.registries);
  return 0;
}

}  // namespace

void add_data_info(CLI::App& data, Action& run) {
  CLI::App* command = data.add_subcommand("info", "Describe a data set; without arguments, the embedded digits.");
  command->footer(
      "Examples:\n  lockstep data info examples/cifar10-resnet20.yaml --picture augmented.png\n"
      "  lockstep data info images=/data/cifar10-train.tar.zst\n"
      "  lockstep data info text=shakespeare.txt context=64\n"
      "  lockstep data info table=examples/houses.csv target=price");
  auto arguments = std::make_shared<InfoArguments>();
  command->add_option("SOURCE", arguments->words, kDataWordsHelp)->expected(0, -1);
  command->add_option("--picture", arguments->picture,
                      "write a PNG with samples; those of a job are augmented as for training");
  command->add_flag("--all", arguments->all, "print every class and every skipped sample");
  command->callback([&run, arguments] { run = [arguments] { return info(*arguments); }; });
}

}  // namespace lockstep::cli
