// CIFAR-10 and CIFAR-100 in their binary version: records of a label (two in CIFAR-100: coarse, fine) and 3 planes of
// 32 x 32 bytes. A path is a .bin file, a folder of them, or the archive as downloaded; it may continue into an
// archive: cifar-10-binary.tar.gz/test_batch.bin. A folder or archive means its training files or, if the set is for
// validation or testing, its test files (SourceOptions::part).
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <sstream>

#include "data/archive.hpp"
#include "data/path.hpp"
#include "data/readers/common.hpp"
#include "data/readers/raw_images.hpp"
#include "data/readers/readers.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kPixels = std::uint64_t{3} * 32 * 32;

struct Cifar {
  std::vector<std::shared_ptr<const ByteSource>> batches;
  std::vector<std::string> class_names;  ///< empty: there is no file with names
};

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::vector<std::string> read_names(const ByteSource& source) {
  std::string text(source.size(), '\0');
  source.read(0, std::as_writable_bytes(std::span(text)));
  std::istringstream lines(text);
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  return names;
}

/// What to read.
struct Request {
  bool test = false;  ///< from a folder or archive: the test files instead of the training files
  ByteCounter counter;
  IndexNotes* notes = nullptr;
};

bool is_wanted(const std::string& name, bool test) {
  if (test) return name == "test.bin" || name == "test_batch.bin";
  return name == "train.bin" || (name.starts_with("data_batch") && name.ends_with(".bin"));
}

/// Adds all requested batches of the folder or archive, or the one called `member`.
void add_tree(const std::string& path, const std::string& member, const Request& request, Cifar& cifar) {
  const std::shared_ptr<const FileTree> tree = open_tree(path, request.counter, request.notes);
  for (const auto& [name, text] : tree->faults()) {
    if (!name.ends_with(".bin") && !name.ends_with(".txt")) continue;
    throw Error(ExitCode::data, fmt::format("{}: {}: {}", path, name, text));
  }
  std::vector<FileTree::Entry> chosen;
  for (const auto& entry : tree->files()) {
    const std::string name = base_name(entry.name);
    if (name == "batches.meta.txt" || name == "fine_label_names.txt") {
      cifar.class_names = read_names(*open_member(tree, entry));
    }
    const bool is_member = entry.name == member || entry.name.ends_with("/" + member);
    if (member.empty() ? is_wanted(name, request.test) : is_member) chosen.push_back(entry);
  }
  if (chosen.empty()) {
    const char* wanted = request.test ? "test_batch.bin or test.bin" : "data_batch_*.bin or train.bin";
    throw Error(ExitCode::data, fmt::format("{}: holds no {}", path, member.empty() ? wanted : member));
  }
  const bool folder = kind_of(path) == PathKind::folder;  // the files of a folder stay open
  for (const auto& entry : chosen) {
    cifar.batches.push_back(folder ? open_bytes(path + "/" + entry.name, request.counter) : open_member(tree, entry));
  }
}

/// Class names are beside the batch, in files with known names.
void add_file(const std::string& path, const Request& request, Cifar& cifar) {
  if (request.notes != nullptr) request.notes->made_from_file(path);
  cifar.batches.push_back(open_bytes(path, request.counter));
  for (const std::string name : {"batches.meta.txt", "fine_label_names.txt"}) {
    const fs::path beside = fs::path(path).parent_path() / name;
    if (kind_of(beside.string()) == PathKind::file)
      cifar.class_names = read_names(*open_bytes(beside.string(), request.counter));
  }
}

void add_path(const std::string& path, const Request& request, Cifar& cifar) {
  const PathKind kind = kind_of(path);
  if (kind == PathKind::file && path.ends_with(".bin")) return add_file(path, request, cifar);
  if (kind != PathKind::nothing) return add_tree(path, "", request, cifar);
  for (fs::path above = fs::path(path).parent_path(); above.has_relative_path(); above = above.parent_path()) {
    if (kind_of(above.string()) != PathKind::file) continue;
    return add_tree(above.string(), fs::path(path).lexically_relative(above).generic_string(), request, cifar);
  }
  throw Error(ExitCode::data, fmt::format("{}: No such file or directory", path));
}

/// Number of label bytes: 1 or 2, from the names of the official files, else from the length.
std::uint64_t label_bytes(const ByteSource& batch) {
  const std::string name = base_name(batch.name());
  const bool hundred = name.ends_with("train.bin") || name.ends_with("test.bin");
  for (const std::uint64_t count : hundred ? std::vector<std::uint64_t>{2, 1} : std::vector<std::uint64_t>{1, 2}) {
    if (batch.size() > 0 && batch.size() % (kPixels + count) == 0) return count;
  }
  throw Error(ExitCode::data, fmt::format("{}: {} bytes; expected a multiple of {} (CIFAR-10) or {} (CIFAR-100)",
                                          batch.name(), batch.size(), kPixels + 1, kPixels + 2));
}

/// The last label byte of each record: the fine one in CIFAR-100.
std::string read_labels(const RawPart& part) {
  std::string labels(static_cast<std::size_t>(part.count), '\0');
  for (std::size_t i = 0; i < labels.size(); ++i) {
    part.source->read(part.begin + i * part.stride + part.pixels - 1,
                      std::as_writable_bytes(std::span(labels).subspan(i, 1)));
  }
  return labels;
}

Shape cifar_shape() {
  return {32, 32, 3};
}

}  // namespace

DataSetInfo foresee_cifar() {
  return {.features = raw_image_features(cifar_shape())};
}

std::unique_ptr<DataSet> open_cifar(const SourceOptions& source, const IndexOptions& options) {
  RawImages images;
  images.source = describe(source.paths);
  images.counter = make_byte_counter();
  images.shape = cifar_shape();
  images.planar = true;
  Cifar cifar;
  const Request request{source.part == SourcePart::test, images.counter, options.notes};
  for (const auto& path : source.paths) add_path(path, request, cifar);
  std::uint64_t label_count = 0;
  for (const auto& batch : cifar.batches) {
    const std::uint64_t count = label_bytes(*batch);
    if (label_count != 0 && count != label_count) {
      throw Error(ExitCode::data, fmt::format("{}: CIFAR-{} among files of CIFAR-{}", batch->name(),
                                              count == 1 ? 10 : 100, count == 1 ? 100 : 10));
    }
    label_count = count;
    const std::uint64_t stride = kPixels + count;
    images.parts.push_back({batch, 0, stride, count, static_cast<std::int64_t>(batch->size() / stride)});
    const std::string labels =
        noted(options.notes, "labels of " + batch->name(), [&] { return read_labels(images.parts.back()); });
    for (const char label : labels) images.labels.push_back(static_cast<unsigned char>(label));
    images.files += batch->name() + ", ";
  }
  const std::size_t classes = label_count == 1 ? 10 : 100;
  images.format = fmt::format("CIFAR-{} binary", classes);
  images.class_names = std::move(cifar.class_names);
  for (std::size_t i = images.class_names.size(); i < classes; ++i) images.class_names.push_back(std::to_string(i));
  return make_raw_images(std::move(images), source, options);
}

}  // namespace lockstep::data
