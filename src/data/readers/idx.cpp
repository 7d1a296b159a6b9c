// IDX files, the format of MNIST: "00 00 08 <dimensions>", the sizes as big-endian 32-bit numbers, unsigned bytes. A
// path is a folder, or files of images and labels; labels are recognised by their single dimension.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>

#include "data/path.hpp"
#include "data/readers/common.hpp"
#include "data/readers/raw_images.hpp"
#include "data/readers/readers.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

struct Idx {
  std::shared_ptr<const ByteSource> source;
  std::vector<std::int64_t> shape;
  std::uint64_t begin() const { return 4 + 4 * shape.size(); }
};

Idx open_idx_file(const std::string& path, const ByteCounter& counter, IndexNotes* notes) {
  if (notes != nullptr) notes->made_from_file(path);
  Idx idx{open_bytes(path, counter), {}};
  const std::uint64_t size = idx.source->size();
  std::array<std::byte, 4> magic{};
  if (size < magic.size()) {
    throw Error(ExitCode::data, fmt::format("{}: {} bytes; an IDX file begins with a magic number of 4", path, size));
  }
  idx.source->read(0, magic);
  const auto value = [](std::byte byte) { return std::to_integer<unsigned>(byte); };
  if (value(magic[0]) != 0 || value(magic[1]) != 0 || value(magic[2]) != 8 || value(magic[3]) < 1 ||
      value(magic[3]) > 4) {
    throw Error(ExitCode::data,
                fmt::format("{}: begins with {:02x} {:02x} {:02x} {:02x}; an IDX file of unsigned bytes "
                            "begins with 00 00 08 and 01 ... 04",
                            path, value(magic[0]), value(magic[1]), value(magic[2]), value(magic[3])));
  }
  idx.shape.resize(value(magic[3]));
  std::vector<std::byte> sizes(4 * idx.shape.size());
  if (size < idx.begin())
    throw Error(ExitCode::data, fmt::format("{}: {} bytes; its header takes {}", path, size, idx.begin()));
  idx.source->read(4, sizes);
  std::uint64_t expected = 1;
  for (std::size_t i = 0; i < idx.shape.size(); ++i) {
    std::uint32_t dimension = 0;
    for (std::size_t k = 0; k < 4; ++k) dimension = (dimension << 8U) | value(sizes[4 * i + k]);
    idx.shape[i] = dimension;
    // Once beyond the file's length, the size is wrong anyway, and must not overflow.
    expected = expected > size ? expected : expected * dimension;
  }
  if (size != idx.begin() + expected) {
    throw Error(ExitCode::data, fmt::format("{}: {} bytes, but its header says {} and so {} bytes", path, size,
                                            to_string(idx.shape), idx.begin() + expected));
  }
  return idx;
}

std::string replace(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// "train-labels-idx1-ubyte" for "train-images-idx3-ubyte", with and without ".gz".
std::string find_labels(const std::string& images) {
  const fs::path path(images);
  std::string name = replace(replace(path.filename().string(), "images", "labels"), "idx3", "idx1");
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  for (const std::string suffix : {"", ".gz"}) {
    const fs::path candidate = path.parent_path() / (name + suffix);
    if (candidate != path && kind_of(candidate.string()) == PathKind::file) return candidate.string();
  }
  throw Error(ExitCode::data, fmt::format("{}: no labels beside it; looked for {} and {}.gz. Name them with `labels:`",
                                          images, name, name));
}

/// The images in a folder for `part`: train or t10k.
std::string find_images(const std::string& folder, const std::string& part) {
  for (const std::string name : {"-images-idx3-ubyte", "-images.idx3-ubyte"}) {
    for (const std::string suffix : {"", ".gz"}) {
      const fs::path candidate = fs::path(folder) / (part + name + suffix);
      if (kind_of(candidate.string()) == PathKind::file) return candidate.string();
    }
  }
  throw Error(ExitCode::data, fmt::format("{}: holds no {}-images-idx3-ubyte, nor with .gz", folder, part));
}

struct Pair {
  Idx images, labels;
};

std::vector<Pair> find_pairs(const SourceOptions& source, IndexNotes* notes, const ByteCounter& counter) {
  const std::string part = source.part == SourcePart::test ? "t10k" : "train";
  std::vector<Pair> pairs;
  std::vector<Idx> labels;
  for (const auto& path : source.paths) {
    const bool folder = kind_of(path) == PathKind::folder;
    Idx idx = open_idx_file(folder ? find_images(path, part) : path, counter, notes);
    if (idx.shape.size() == 1) {
      labels.push_back(std::move(idx));
    } else {
      pairs.push_back({std::move(idx), {}});
    }
  }
  if (!source.labels.empty()) labels.push_back(open_idx_file(source.labels, counter, notes));
  if (!labels.empty() && labels.size() != pairs.size()) {
    throw Error(ExitCode::data, fmt::format("{}: {} files of images and {} of labels; expected as many of each",
                                            describe(source.paths), pairs.size(), labels.size()));
  }
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto& name = pairs[i].images.source->name();
    pairs[i].labels = labels.empty() ? open_idx_file(find_labels(name), counter, notes) : std::move(labels[i]);
  }
  return pairs;
}

/// [height, width, channels]
Shape image_shape_of(const Idx& images) {
  const auto& shape = images.shape;
  if (shape.size() < 3 || (shape.size() == 4 && shape[3] != 1 && shape[3] != 3)) {
    throw Error(ExitCode::data, fmt::format("{}: shape {}; expected images [count, height, width] or [count, height, "
                                            "width, 1 or 3]",
                                            images.source->name(), to_string(shape)));
  }
  if (std::count(shape.begin(), shape.end(), 0) > 0) {
    throw Error(ExitCode::data, fmt::format("{}: shape {}; holds no image", images.source->name(), to_string(shape)));
  }
  return {shape[1], shape[2], shape.size() == 4 ? shape[3] : 1};
}

void add_labels(const Pair& pair, std::vector<std::int32_t>& labels) {
  if (pair.labels.shape.size() != 1) {
    throw Error(ExitCode::data, fmt::format("{}: shape {}; expected labels [count]", pair.labels.source->name(),
                                            to_string(pair.labels.shape)));
  }
  if (pair.labels.shape[0] != pair.images.shape[0]) {
    throw Error(ExitCode::data, fmt::format("{} holds {} images, but {} holds {} labels", pair.images.source->name(),
                                            pair.images.shape[0], pair.labels.source->name(), pair.labels.shape[0]));
  }
  std::vector<std::uint8_t> bytes(pair.labels.shape[0]);
  pair.labels.source->read(pair.labels.begin(), std::as_writable_bytes(std::span(bytes)));
  labels.insert(labels.end(), bytes.begin(), bytes.end());
}

}  // namespace

std::unique_ptr<DataSet> open_idx(const SourceOptions& source, const IndexOptions& options) {
  RawImages images;
  images.format = "IDX";
  images.source = describe(source.paths);
  images.counter = make_byte_counter();
  for (const auto& pair : find_pairs(source, options.notes, images.counter)) {
    const Shape shape = image_shape_of(pair.images);
    if (!images.parts.empty() && shape != images.shape) {
      throw Error(ExitCode::data, fmt::format("{}: images of {}; those before are {}", pair.images.source->name(),
                                              fmt::join(shape, " x "), fmt::join(images.shape, " x ")));
    }
    images.shape = shape;
    images.files += pair.images.source->name() + ", " + pair.labels.source->name() + ", ";
    add_labels(pair, images.labels);
    const std::uint64_t stride = shape[0] * shape[1] * shape[2];
    images.parts.push_back({pair.images.source, pair.images.begin(), stride, 0, pair.images.shape[0]});
  }
  const auto largest = std::max_element(images.labels.begin(), images.labels.end());
  for (std::int32_t i = 0; largest != images.labels.end() && i <= *largest; ++i)
    images.class_names.push_back(std::to_string(i));
  return make_raw_images(std::move(images), source, options);
}

}  // namespace lockstep::data
