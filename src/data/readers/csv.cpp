// A CSV with a header row: `label` is the class; every other column names an image file, relative to the CSV's folder,
// and is a feature with the column's name. So a sample may have two images: left,right,label. One may be a mask, which
// has a class for each pixel; then the column `label` may be missing. Or columns of numbers are predicted (`target`),
// which take its place.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>

#include "core/words.hpp"
#include "data/bytes.hpp"
#include "data/path.hpp"
#include "data/readers/common.hpp"
#include "data/readers/encoded_images.hpp"
#include "data/readers/readers.hpp"
#include "data/readers/table_columns.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

/// Classes are numbered from 0; a label below this can be a class number.
inline constexpr int kMaxNumberedClasses = 100000;

enum class LabelKind { word, class_number, other_number, missing };

bool is_digits(const std::string& text) {
  return text.find_first_not_of("0123456789") == std::string::npos;
}

LabelKind label_kind(const std::string& label) {
  if (is_missing(label)) return LabelKind::missing;
  if (is_digits(label)) {
    if (label.size() > 1 && label[0] == '0') return LabelKind::word;
    return label.size() < 6 ? LabelKind::class_number : LabelKind::other_number;
  }
  const bool plus = label[0] == '+';  // not accepted by from_chars
  double value = 0;
  const auto [end, error] = std::from_chars(label.data() + (plus ? 1 : 0), label.data() + label.size(), value);
  return end == label.data() + label.size() && error != std::errc::invalid_argument ? LabelKind::other_number
                                                                                    : LabelKind::word;
}

struct Labels {
  std::map<std::string, LabelKind> distinct;
  int largest = -1;                      ///< largest class number
  const ImageSample* refused = nullptr;  ///< the first sample whose label is a number, but cannot be a class
  bool have(LabelKind kind) const {
    return std::any_of(distinct.begin(), distinct.end(), [kind](const auto& entry) { return entry.second == kind; });
  }
};

Labels look_at_labels(std::vector<ImageSample>& samples) {
  Labels labels;
  Spellings spellings;
  for (const auto& sample : samples) spellings.add(sample.class_name);
  for (auto& sample : samples) {
    std::string& label = sample.class_name;
    if (label.empty()) continue;
    label = spellings.name_of(label);
    if (const auto key = category_key(label); label_kind(key) == LabelKind::class_number) label = key;
    const LabelKind kind = labels.distinct.try_emplace(label, label_kind(label)).first->second;
    if (kind == LabelKind::class_number) labels.largest = std::max(labels.largest, std::stoi(label));
    if (kind == LabelKind::other_number && labels.refused == nullptr) labels.refused = &sample;
    if (kind == LabelKind::missing && sample.fault.empty())
      sample.fault = fmt::format("the label is {}, no class", label);
  }
  std::erase_if(labels.distinct, [](const auto& entry) { return entry.second == LabelKind::missing; });
  return labels;
}

/// "98 of 100 classes have no sample (1, 2, 3 and 95 more)"
std::string unused_text(const std::map<std::string, LabelKind>& used, int classes) {
  std::vector<std::string> unused;
  for (int i = 0; i < classes; ++i) {
    if (!used.contains(std::to_string(i))) unused.push_back(std::to_string(i));
  }
  if (unused.empty()) return "";
  return fmt::format(
      "{} of {} classes {} no sample ({}): labels that are all numbers are the classes' numbers, from 0 to "
      "the largest",
      unused.size(), classes, unused.size() == 1 ? "has" : "have", few_of(unused));
}

/// Sets class_names and warnings. If all labels are numbers, they are the classes' numbers, from 0 to the largest; a
/// warning names classes without a sample. If any label is a word, classes are the distinct labels, sorted. Numbers
/// with leading zeros are words. A label that is not a number ("nan", as programs write a missing value) makes its
/// sample bad. Throws Error(data), with the place of the first one, if all labels are numbers and one is negative, has
/// a fraction or is too large.
void name_classes(ImageCandidates& candidates) {
  const Labels labels = look_at_labels(candidates.samples);
  candidates.class_names.clear();
  if (labels.have(LabelKind::word)) {
    for (const auto& [label, kind] : labels.distinct) candidates.class_names.push_back(label);
    return;
  }
  if (labels.refused != nullptr) {
    throw Error(
        ExitCode::data,
        fmt::format("{}: label '{}': expected the number of a class, 0 to {}, as the other labels are numbers; "
                    "write classes as whole numbers from 0, or all of them as words; numbers to predict are named by "
                    "`target`, as in `target: label`",
                    labels.refused->name, labels.refused->class_name, kMaxNumberedClasses - 1));
  }
  for (int i = 0; i <= labels.largest; ++i) candidates.class_names.push_back(std::to_string(i));
  const std::string unused = unused_text(labels.distinct, labels.largest + 1);
  if (!unused.empty()) candidates.class_warnings.push_back(unused);
}

/// Of another set the training set's names count.
void spell_labels(const std::vector<std::string>& names, ImageCandidates& candidates) {
  Spellings spellings;
  for (const auto& name : names) spellings.add(name);
  for (auto& sample : candidates.samples) {
    const std::string& label = sample.class_name;
    if (!label.empty() && is_missing(label) && sample.fault.empty()) {
      sample.fault = fmt::format("the label is {}, no class", label);
    }
    sample.class_name = spellings.name_of(label);
  }
}

struct Columns {
  std::vector<std::string> images;
  std::vector<std::size_t> of_images, targets;
  std::size_t label = 0;  ///< beyond the last column: there is none
};

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

Columns columns_of(const CsvRow& header, const std::string& path, bool has_mask,
                   const std::vector<std::string>& targets) {
  const auto& names = header.fields;
  const auto label = targets.empty() ? std::find(names.begin(), names.end(), "label") : names.end();
  Columns columns;
  columns.label = label - names.begin();
  if ((columns.label == names.size() && !has_mask && targets.empty()) || names.size() < 2) {
    throw Error(ExitCode::data, fmt::format("{}:{}: the columns are {}; expected one or more of image files, and one "
                                            "called label",
                                            path, header.line, join(names)));
  }
  const TableFile file{path, header, {}};
  for (const auto& name : targets) columns.targets.push_back(readable_column(file, name));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    if (i == columns.label || std::count(columns.targets.begin(), columns.targets.end(), i) > 0) continue;
    columns.images.push_back(name);
    columns.of_images.push_back(i);
  }
  if (columns.images.empty() ||
      (!targets.empty() && std::count(columns.images.begin(), columns.images.end(), "label") > 0)) {
    throw Error(ExitCode::data, fmt::format("{}:{}: the columns are {}; expected one or more of image files beside the "
                                            "targets {}, and none called label",
                                            path, header.line, join(names), join(targets)));
  }
  return columns;
}

/// Sets the numbers of a sample, or its fault.
void take_numbers(const CsvRow& row, const CsvRow& header, const std::vector<std::size_t>& targets,
                  ImageSample& sample) {
  for (const std::size_t column : targets) {
    const auto number = number_in(row.fields[column]);
    const float rounded = number.value_or(0);
    if (sample.fault.empty() && is_missing(row.fields[column])) {
      sample.fault = fmt::format("column '{}': {}", header.fields[column], missing_target(row.fields[column]));
    } else if (sample.fault.empty() && (!number || !std::isfinite(rounded))) {
      sample.fault = fmt::format("column '{}': expected a number that fp32 can hold, found '{}'", header.fields[column],
                                 row.fields[column]);
    }
    sample.numbers.push_back(number.value_or(0));
  }
}

/// Places and sizes of the images of samples from `first` on, and problems with them.
std::string look_at_files(const ImageCandidates& candidates, std::size_t first, IndexNotes* notes) {
  std::string found;
  for (std::size_t i = first; i < candidates.samples.size(); ++i) {
    for (const auto& image : candidates.samples[i].images) {
      auto entry = image.entry;
      const std::string fault = image.tree->look_up(entry, notes);
      append(found, entry.offset);
      append(found, entry.size);
      const bool backslashes = !fault.empty() && entry.name.find('\\') != std::string::npos;
      append_text(found, entry.name.empty() ? "a file name is empty"
                         : backslashes      ? fault + "; write slashes instead of backslashes"
                                            : fault);
    }
  }
  return found;
}

void add_sizes(const std::string& path, std::size_t first, IndexNotes* notes, ImageCandidates& candidates) {
  const std::string found =
      noted(notes, "files named by " + whole_path(path), [&] { return look_at_files(candidates, first, notes); });
  ByteReader reader(found, "a noted list of files ends too early");
  for (std::size_t i = first; i < candidates.samples.size(); ++i) {
    ImageSample& sample = candidates.samples[i];
    for (auto& image : sample.images) {
      image.entry.offset = reader.value<std::uint64_t>();
      image.entry.size = reader.value<std::uint64_t>();
      const std::string fault = reader.text();
      if (sample.fault.empty()) sample.fault = fault;
    }
  }
}

void add_file(const std::string& path, IndexNotes* notes, ImageCandidates& candidates) {
  if (notes != nullptr) notes->made_from_file(path);
  const TableFile file = read_table(path, candidates.counter);
  const Columns columns = columns_of(file.header, path, !candidates.mask_classes.empty(), candidates.targets);
  candidates.warnings.insert(candidates.warnings.end(), file.warnings.begin(), file.warnings.end());
  candidates.has_labels = columns.label < file.header.fields.size();
  if (!candidates.feature_names.empty() && candidates.feature_names != columns.images) {
    throw Error(ExitCode::data, fmt::format("{}:{}: the image columns are {}; those of the file before are {}", path,
                                            file.header.line, join(columns.images), join(candidates.feature_names)));
  }
  candidates.feature_names = columns.images;
  const auto parent = fs::path(path).parent_path();
  const std::shared_ptr<const FileTree> folder =
      open_loose_files(parent.empty() ? "." : parent.string(), candidates.counter);
  candidates.trees.push_back(folder);
  const std::size_t first = candidates.samples.size();
  for (const CsvRow& row : file.rows) {
    const std::string label = candidates.has_labels ? std::string(without_spaces(row.fields[columns.label])) : "";
    ImageSample sample{fmt::format("{}:{}", path, row.line), label, {}, row.fault};
    if (candidates.has_labels && label.empty() && sample.fault.empty()) sample.fault = "the label is empty";
    take_numbers(row, file.header, columns.targets, sample);
    for (const std::size_t c : columns.of_images) sample.images.push_back({folder.get(), {row.fields[c], 0, 0}});
    candidates.samples.push_back(std::move(sample));
  }
  add_sizes(path, first, notes, candidates);
}

struct MaskColumn {
  std::string name;
  std::vector<std::string> classes;  ///< empty: there is no such column
};

/// As the source says, or the training set has it.
MaskColumn mask_of(const SourceOptions& source, const DataSetInfo* like) {
  for (const Feature& feature : like == nullptr ? std::vector<Feature>() : like->features) {
    if (feature.kind != Feature::Kind::mask) continue;
    if (!source.mask.empty() && source.classes != feature.classes) {
      throw Error(ExitCode::data, fmt::format("{}: classes: expected those of the training set's masks, in their "
                                              "order, {}, found {}; name them alike",
                                              describe(source.paths), join(feature.classes), join(source.classes)));
    }
    return {feature.name, feature.classes};
  }
  return {source.mask, source.mask.empty() ? std::vector<std::string>() : source.classes};
}

std::size_t place_of_mask(const ImageCandidates& candidates, const std::string& mask, const std::string& path) {
  const auto& names = candidates.feature_names;
  const auto found = std::find(names.begin(), names.end(), mask);
  if (found == names.end() || names.size() < 2) {
    throw Error(ExitCode::data, fmt::format("{}:1: expected a column of images and the column '{}' of masks, found {}",
                                            path, mask, join(names)));
  }
  return found - names.begin();
}

/// The columns of numbers, in the order of the training set if it has the same.
std::vector<std::string> targets_of(const SourceOptions& source, const DataSetInfo* like) {
  std::vector<std::string> known;
  for (const Feature& feature : like == nullptr ? std::vector<Feature>() : like->features) {
    if (feature.kind != Feature::Kind::tensor) continue;
    known.push_back(feature.name);
    if (!feature.classes.empty()) known = feature.classes;
  }
  const auto& own = source.target;
  return std::is_permutation(own.begin(), own.end(), known.begin(), known.end()) ? known : own;
}

}  // namespace

std::unique_ptr<DataSet> open_csv(const SourceOptions& source, const IndexOptions& options) {
  using Pixels = std::vector<std::int64_t>;
  ImageCandidates candidates;
  candidates.format = "CSV of image files";
  candidates.counter = make_byte_counter();
  const auto [mask, classes] = mask_of(source, options.like);
  candidates.mask_classes = classes;
  const Attributes& settings = source.attributes;
  candidates.mask_code = MaskCode(classes.size(), settings.has("values") ? settings.integers("values") : Pixels(),
                                  settings.has("ignored") ? settings.integer("ignored") : kIgnoredPixel);
  candidates.targets = targets_of(source, options.like);
  for (const auto& path : source.paths) add_file(path, options.notes, candidates);
  if (!classes.empty()) candidates.mask = place_of_mask(candidates, mask, source.paths.front());
  if (candidates.has_labels && options.like == nullptr) name_classes(candidates);
  if (candidates.has_labels && options.like != nullptr) spell_labels(options.like->class_names, candidates);
  return make_encoded_images(std::move(candidates), source, options);
}

}  // namespace lockstep::data
