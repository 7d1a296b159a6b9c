// A CSV with a header row: `label` is the class, every other column names an image file, relative to the CSV's
// folder, and is a feature of that name. So a sample may hold two images: left,right,label.
// csv_labels says what classes the labels mean.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "data/bytes.hpp"
#include "data/readers/common.hpp"
#include "data/readers/csv_labels.hpp"
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

/// Sizes of the images of samples `first` and on, and what is wrong with them.
std::string look_at_files(const ImageCandidates& candidates, std::size_t first, IndexNotes* notes) {
  std::string found;
  for (std::size_t i = first; i < candidates.samples.size(); ++i) {
    for (const auto& image : candidates.samples[i].images) {
      const fs::path path = fs::path(image.tree->path()) / image.entry.name;
      if (notes != nullptr) notes->made_from_file(path.string());
      std::error_code failed;
      const auto size = fs::file_size(path, failed);
      append(found, failed ? std::uint64_t{0} : std::uint64_t{size});
      const bool named = !image.entry.name.empty();
      append_text(found, !named    ? "a file name is empty"
                         : !failed ? ""
                                   : fmt::format("{}: {}", image.entry.name, failed.message()));
    }
  }
  return found;
}

void add_sizes(const std::string& path, std::size_t first, IndexNotes* notes, ImageCandidates& candidates) {
  const std::string found = noted(notes, "files named by " + fs::absolute(path).string(),
                                  [&] { return look_at_files(candidates, first, notes); });
  ByteReader reader(found, "a noted list of files ends too early");
  for (std::size_t i = first; i < candidates.samples.size(); ++i) {
    ImageSample& sample = candidates.samples[i];
    for (auto& image : sample.images) {
      image.entry.size = reader.value<std::uint64_t>();
      const std::string fault = reader.text();
      if (sample.fault.empty()) sample.fault = fault;
    }
  }
}

void add_file(const std::string& path, IndexNotes* notes, ImageCandidates& candidates) {
  if (notes != nullptr) notes->made_from_file(path);
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
  const std::size_t first = candidates.samples.size();
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const CsvRow& row = rows[i];
    if (row.fields.size() != rows.front().fields.size()) {
      throw Error(ExitCode::data, fmt::format("{}:{}: {} fields; the header has {}", path, row.line, row.fields.size(),
                                              rows.front().fields.size()));
    }
    ImageSample sample{fmt::format("{}:{}", path, row.line), row.fields[columns.label], {}, ""};
    if (sample.class_name.empty()) sample.fault = "the label is empty";
    for (std::size_t c = 0; c < row.fields.size(); ++c) {
      if (c != columns.label) sample.images.push_back({folder.get(), {row.fields[c], 0, 0}});
    }
    candidates.samples.push_back(std::move(sample));
  }
  add_sizes(path, first, notes, candidates);
}

}  // namespace

std::unique_ptr<DataSet> open_csv(const SourceOptions& source, const IndexOptions& options) {
  ImageCandidates candidates;
  candidates.format = "CSV of image files";
  candidates.counter = make_byte_counter();
  for (const auto& path : source.paths) add_file(path, options.notes, candidates);
  name_classes(candidates);
  return make_encoded_images(std::move(candidates), source, options);
}

}  // namespace lockstep::data
