// A CSV with a header row: `label` is the class, every other column names an image file, relative to the CSV's
// folder, and is a feature of that name. So a sample may hold two images: left,right,label.
// Labels that are all numbers are the classes' numbers; else classes are the distinct labels, sorted.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "data/readers/bad_samples.hpp"
#include "data/readers/csv_table.hpp"
#include "data/readers/encoded_images.hpp"
#include "data/readers/readers.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

struct Columns {
  std::vector<std::string> images;
  std::size_t label = 0;
};

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

Columns columns_of(const CsvRow& header, const std::string& path) {
  const auto label = std::find(header.fields.begin(), header.fields.end(), "label");
  if (label == header.fields.end() || header.fields.size() < 2) {
    throw Error(ExitCode::data, fmt::format("{}:{}: the columns are {}; expected one or more of image files, and one "
                                            "called label",
                                            path, header.line, join(header.fields)));
  }
  Columns columns;
  columns.label = static_cast<std::size_t>(label - header.fields.begin());
  for (const auto& name : header.fields) {
    if (name.empty() || std::count(header.fields.begin(), header.fields.end(), name) > 1) {
      throw Error(ExitCode::data, fmt::format("{}:{}: the column name '{}' is {}", path, header.line, name,
                                              name.empty() ? "empty" : "there twice"));
    }
    if (name != "label") columns.images.push_back(name);
  }
  return columns;
}

void add_image(const std::string& name, const std::shared_ptr<const FileTree>& folder, ImageSample& sample) {
  std::error_code failed;
  const auto size = fs::file_size(fs::path(folder->path()) / name, failed);
  if (failed && sample.fault.empty()) {
    sample.fault = name.empty() ? "a file name is empty" : fmt::format("{}: {}", name, failed.message());
  }
  sample.images.push_back({folder.get(), {name, 0, failed ? 0 : size}});
}

void add_file(const std::string& path, ImageCandidates& candidates) {
  const auto bytes = read_whole(File(path, candidates.counter));
  const auto rows = parse_csv({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
  if (rows.empty()) throw Error(ExitCode::data, fmt::format("{}: empty; expected a header such as image,label", path));
  const Columns columns = columns_of(rows.front(), path);
  if (!candidates.feature_names.empty() && candidates.feature_names != columns.images) {
    throw Error(ExitCode::data, fmt::format("{}:{}: the image columns are {}; those of the file before are {}", path,
                                            rows.front().line, join(columns.images), join(candidates.feature_names)));
  }
  candidates.feature_names = columns.images;
  const auto parent = fs::path(path).parent_path();
  const std::shared_ptr<const FileTree> folder =
      open_loose_files(parent.empty() ? "." : parent.string(), candidates.counter);
  candidates.trees.push_back(folder);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const CsvRow& row = rows[i];
    if (row.fields.size() != rows.front().fields.size()) {
      throw Error(ExitCode::data, fmt::format("{}:{}: {} fields; the header has {}", path, row.line, row.fields.size(),
                                              rows.front().fields.size()));
    }
    ImageSample sample{fmt::format("{}:{}", path, row.line), row.fields[columns.label], {}, ""};
    if (sample.class_name.empty()) sample.fault = "the label is empty";
    for (std::size_t c = 0; c < row.fields.size(); ++c) {
      if (c != columns.label) add_image(row.fields[c], folder, sample);
    }
    candidates.samples.push_back(std::move(sample));
  }
}

bool is_small_number(const std::string& text) {
  return !text.empty() && text.size() < 6 && text.find_first_not_of("0123456789") == std::string::npos &&
         (text.size() == 1 || text[0] != '0');
}

std::vector<std::string> classes_of(const std::vector<ImageSample>& samples) {
  std::set<std::string> distinct;
  for (const auto& sample : samples) {
    if (!sample.class_name.empty()) distinct.insert(sample.class_name);
  }
  if (!std::all_of(distinct.begin(), distinct.end(), is_small_number)) return {distinct.begin(), distinct.end()};
  int most = -1;
  for (const auto& text : distinct) most = std::max(most, std::stoi(text));
  std::vector<std::string> numbers;
  for (int i = 0; i <= most; ++i) numbers.push_back(std::to_string(i));
  return numbers;
}

}  // namespace

std::unique_ptr<DataSet> open_csv(const SourceOptions& source, const IndexOptions& options) {
  ImageCandidates candidates;
  candidates.format = "CSV of image files";
  candidates.counter = make_byte_counter();
  for (const auto& path : source.paths) add_file(path, candidates);
  candidates.class_names = classes_of(candidates.samples);
  return make_encoded_images(std::move(candidates), source, options);
}

}  // namespace lockstep::data
