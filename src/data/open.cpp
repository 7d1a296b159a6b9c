#include "data/open.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "data/digits.hpp"
#include "data/readers/readers.hpp"
#include "data/readers/view.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

using Open = std::unique_ptr<DataSet> (*)(const SourceOptions&, const IndexOptions&);

std::unique_ptr<DataSet> open_digits(const SourceOptions& source, const IndexOptions&) {
  return make_digits(source.count, source.first, source.pairs);
}

const std::map<std::string, Open>& readers() {
  static const std::map<std::string, Open> table{
      {"digits", open_digits}, {"images", open_images}, {"csv", open_csv},       {"idx", open_idx},
      {"cifar", open_cifar},   {"text", open_text},     {"tokens", open_tokens}, {"packed", open_packed},
  };
  return table;
}

/// `count` samples spread evenly over the set: the first ones might all be of one class.
std::unique_ptr<DataSet> limit(std::unique_ptr<DataSet> whole, std::int64_t count) {
  const std::int64_t size = whole->size();
  if (count <= 0 || count >= size) return whole;
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(i * size / count);
  return make_view(std::move(whole), std::move(ids));
}

std::unique_ptr<DataSet> open_source(const SourceOptions& source, const IndexOptions& options) {
  const auto reader = readers().find(source.kind);
  if (reader == readers().end()) {
    throw Error(ExitCode::configuration, fmt::format("'{}' is no kind of data set", source.kind));
  }
  if (source.kind != "digits" && source.paths.empty()) {
    throw Error(ExitCode::data, fmt::format("no path; expected one for a data set of kind '{}'", source.kind));
  }
  auto set = reader->second(source, options);
  return source.kind == "digits" ? std::move(set) : limit(std::move(set), source.count);
}

}  // namespace

std::unique_ptr<DataSet> open(const SourceOptions& source, const IndexOptions& options) {
  const std::string place = source.place.text();
  const std::string prefix = place.empty() ? "" : place + ": ";
  try {
    return open_source(source, options);
  } catch (const Error& error) {
    throw Error(error.code(), prefix + error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    throw Error(ExitCode::data, fmt::format("{}{}: {}", prefix, error.path1().string(), error.code().message()));
  }
}

}  // namespace lockstep::data
