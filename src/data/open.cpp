#include "data/open.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "core/errno_code.hpp"
#include "data/digits.hpp"
#include "data/path.hpp"
#include "data/readers/readers.hpp"
#include "data/sample_weights.hpp"
#include "data/split.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

std::unique_ptr<DataSet> open_own(const SourceOptions& source, const IndexOptions& options) {
  const ReaderDef* const reader = options.readers == nullptr ? nullptr : options.readers->find(source.reader);
  LOCKSTEP_CHECK(reader != nullptr, "a job's readers are in the registry that it was read with");
  auto set = reader->open({source.paths, source.attributes, options.like});
  LOCKSTEP_CHECK(set != nullptr, "the reader '" + source.reader + "' returns a data set");
  return set;
}

std::unique_ptr<DataSet> open_files(const SourceOptions& source, const IndexOptions& options) {
  switch (source.kind) {
    case SourceKind::digits:
    case SourceKind::program:
      break;
    case SourceKind::own:
      return open_own(source, options);
    case SourceKind::images:
      return open_images(source, options);
    case SourceKind::idx:
      return open_idx(source, options);
    case SourceKind::cifar:
      return open_cifar(source, options);
    case SourceKind::text:
      return open_text(source, options);
    case SourceKind::texts:
      return open_texts(source, options);
    case SourceKind::tokens:
      return open_tokens(source, options);
    case SourceKind::csv:
      return open_csv(source, options);
    case SourceKind::table:
      return open_table(source, options);
    case SourceKind::packed:
      return open_packed(source, options);
  }
  LOCKSTEP_CHECK(false, "a data set of files");
}

std::unique_ptr<DataSet> open_source(const SourceOptions& source, const IndexOptions& options) {
  if (source.kind == SourceKind::digits) {
    return make_digits(
        source.count, source.first,
        {.pairs = source.pairs, .masks = source.masks, .same = source.same, .triplets = source.triplets});
  }
  if (source.kind == SourceKind::program) {
    throw Error(ExitCode::usage,
                "expected the samples of a program that calls train_job() with DataSets (lockstep/trainer.hpp), found "
                "none");
  }
  if (source.paths.empty()) {
    throw Error(ExitCode::data, fmt::format("no path; expected one for a data set of kind '{}'", name_of(source.kind)));
  }
  SourceOptions files = source;
  files.paths = with_matching_objects(source.paths);
  auto set = limit(open_files(files, options), source.count);
  return source.weights.empty() ? std::move(set) : with_weights_of(std::move(set), source.weights);
}

std::optional<DataSetInfo> foresee_files(const SourceOptions& source) {
  switch (source.kind) {
    case SourceKind::cifar:
      return foresee_cifar();
    case SourceKind::text:
      return foresee_text(source);
    case SourceKind::texts:
      return foresee_texts(source);
    case SourceKind::tokens:
      return foresee_tokens(source);
    default:
      return std::nullopt;
  }
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
    throw Error(code_of_errno(error.code(), ExitCode::data),
                fmt::format("{}{}: {}", prefix, error.path1().string(), error.code().message()));
  }
}

std::optional<DataSetInfo> foresee(const SourceOptions& source) {
  if (source.kind == SourceKind::digits) return open(source)->info();  // which has no files
  auto info = foresee_files(source);
  if (!info) return info;
  info->format = name_of(source.kind);
  if (!source.weights.empty()) info->features.push_back(weight_feature());
  return info;
}

}  // namespace lockstep::data
