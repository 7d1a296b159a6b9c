#include "cli/sample_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "core/whole_file.hpp"
#include "data/readers/csv_table.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

namespace {

void add_rows(const std::string& path, const std::vector<std::string>& features, std::vector<SampleFiles>& samples) {
  const auto text = read_whole_file(path);
  if (!text) throw Error(ExitCode::data, fmt::format("{}: cannot open; expected a CSV file", path));
  const auto rows = data::parse_csv(*text, path);
  const std::vector<std::string> header = rows.empty() ? std::vector<std::string>{} : rows.front().fields;
  std::vector<std::size_t> columns;
  for (const auto& feature : features) {
    const auto found = std::find(header.begin(), header.end(), feature);
    if (found == header.end()) {
      throw Error(ExitCode::data,
                  fmt::format("{}:1: expected a column '{}', found {}", path, feature,
                              header.empty() ? "an empty file" : fmt::format("{}", fmt::join(header, ", "))));
    }
    columns.push_back(static_cast<std::size_t>(found - header.begin()));
  }
  const auto folder = std::filesystem::path(path).parent_path();
  for (std::size_t i = 1; i < rows.size(); ++i) {
    SampleFiles sample;
    for (const std::size_t column : columns) {
      if (column >= rows[i].fields.size()) {
        throw Error(ExitCode::data, fmt::format("{}:{}: expected {} fields, as the header has, found {}", path,
                                                rows[i].line, header.size(), rows[i].fields.size()));
      }
      sample.push_back((folder / rows[i].fields[column]).string());
    }
    samples.push_back(std::move(sample));
  }
}

}  // namespace

std::vector<SampleFiles> sample_files(const std::vector<std::string>& files, const std::vector<std::string>& features) {
  std::vector<SampleFiles> samples;
  SampleFiles sample;
  for (const auto& file : files) {
    if (file.ends_with(".csv")) {
      add_rows(file, features, samples);
      continue;
    }
    sample.push_back(file);
    if (sample.size() < features.size()) continue;
    samples.push_back(sample);
    sample.clear();
  }
  if (samples.empty() || !sample.empty()) {
    throw Error(ExitCode::usage, fmt::format("predict: expected image files, {} for each sample ({}), or a CSV file, "
                                             "found {}; give them after the job",
                                             features.size(), fmt::join(features, ", "), files.size()));
  }
  return samples;
}

}  // namespace lockstep::cli
