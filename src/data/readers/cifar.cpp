// CIFAR-10 and CIFAR-100 in their binary version: records of a label (two in CIFAR-100: coarse, fine) and 3 planes
// of 32 x 32 bytes. A path is a .bin file, a folder of them, or the archive as it is downloaded; it may go on into
// an archive: cifar-10-binary.tar.gz/test_batch.bin. A folder or archive stands for its training files.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <sstream>

#include "data/readers/bad_samples.hpp"
#include "data/readers/limits.hpp"
#include "data/readers/raw_images.hpp"
#include "data/readers/readers.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kPixels = std::uint64_t{3} * 32 * 32;

struct Cifar {
  std::vector<std::shared_ptr<const ByteSource>> batches;
  std::vector<std::string> class_names;  ///< empty: no file of names was found
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

/// All batches of the tree that are for training, else those for testing; or the one that `member` names.
void add_tree(const std::shared_ptr<const FileTree>& tree, const std::string& member, const ByteCounter& counter,
              Cifar& cifar) {
  std::vector<FileTree::Entry> train, test;
  for (const auto& entry : tree->files()) {
    const std::string name = base_name(entry.name);
    if (name == "batches.meta.txt" || name == "fine_label_names.txt") {
      cifar.class_names = read_names(*open_member(tree, entry));
    }
    const bool is_train = name == "train.bin" || (name.starts_with("data_batch") && name.ends_with(".bin"));
    const bool is_test = name == "test.bin" || name == "test_batch.bin";
    const bool is_member = !member.empty() && (entry.name == member || entry.name.ends_with("/" + member));
    if (member.empty() ? is_train : is_member) train.push_back(entry);
    if (member.empty() && is_test) test.push_back(entry);
  }
  const auto& chosen = train.empty() ? test : train;
  if (chosen.empty()) {
    throw Error(ExitCode::data,
                fmt::format("{}: holds no {}", tree->path(),
                            member.empty() ? "data_batch_*.bin, train.bin, test_batch.bin or test.bin" : member));
  }
  const bool folder = fs::is_directory(tree->path());  // whose files stay open
  for (const auto& entry : chosen) {
    const std::string path = tree->path() + "/" + entry.name;
    cifar.batches.push_back(folder ? open_bytes(path, counter) : open_member(tree, entry));
  }
}

/// Names lie beside the batch, in files of known names.
void add_file(const std::string& path, const ByteCounter& counter, Cifar& cifar) {
  cifar.batches.push_back(open_bytes(path, counter));
  for (const std::string name : {"batches.meta.txt", "fine_label_names.txt"}) {
    const fs::path beside = fs::path(path).parent_path() / name;
    if (fs::exists(beside)) cifar.class_names = read_names(*open_bytes(beside.string(), counter));
  }
}

void add_path(const std::string& path, const ByteCounter& counter, Cifar& cifar) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return add_tree(open_tree(path, counter), "", counter, cifar);
  if (fs::is_regular_file(path, ignored)) {
    if (path.ends_with(".bin")) return add_file(path, counter, cifar);
    return add_tree(open_tree(path, counter), "", counter, cifar);
  }
  for (fs::path above = fs::path(path).parent_path(); above.has_relative_path(); above = above.parent_path()) {
    if (!fs::is_regular_file(above, ignored)) continue;
    return add_tree(open_tree(above.string(), counter), fs::path(path).lexically_relative(above).generic_string(),
                    counter, cifar);
  }
  throw Error(ExitCode::data, fmt::format("{}: No such file or directory", path));
}

/// 1 label byte or 2, by the names that the official files have, else by the length.
std::uint64_t label_bytes(const ByteSource& batch) {
  const std::string name = base_name(batch.name());
  const bool hundred = name.ends_with("train.bin") || name.ends_with("test.bin");
  for (const std::uint64_t count : hundred ? std::vector<std::uint64_t>{2, 1} : std::vector<std::uint64_t>{1, 2}) {
    if (batch.size() > 0 && batch.size() % (kPixels + count) == 0) return count;
  }
  throw Error(ExitCode::data, fmt::format("{}: {} bytes; expected a multiple of {} (CIFAR-10) or {} (CIFAR-100)",
                                          batch.name(), batch.size(), kPixels + 1, kPixels + 2));
}

/// The last label byte of each record: CIFAR-100's fine one.
void add_labels(const RawPart& part, std::vector<std::int32_t>& labels) {
  std::vector<std::byte> label(1);
  for (std::int64_t i = 0; i < part.count; ++i) {
    part.source->read(part.begin + static_cast<std::uint64_t>(i) * part.stride + part.pixels - 1, label);
    labels.push_back(std::to_integer<std::int32_t>(label[0]));
  }
}

}  // namespace

std::unique_ptr<DataSet> open_cifar(const SourceOptions& source, const IndexOptions& options) {
  RawImages images;
  images.source = describe(source.paths);
  images.counter = make_byte_counter();
  images.size = {32, 32, 3};
  images.planar = true;
  Cifar cifar;
  for (const auto& path : source.paths) add_path(path, images.counter, cifar);
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
    add_labels(images.parts.back(), images.labels);
  }
  const std::size_t classes = label_count == 1 ? 10 : 100;
  images.format = fmt::format("CIFAR-{} binary", classes);
  images.class_names = std::move(cifar.class_names);
  for (std::size_t i = images.class_names.size(); i < classes; ++i) images.class_names.push_back(std::to_string(i));
  return make_raw_images(std::move(images), options);
}

}  // namespace lockstep::data
