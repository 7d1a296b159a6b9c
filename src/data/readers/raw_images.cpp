#include "data/readers/raw_images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>

#include "core/digest.hpp"
#include "core/words.hpp"
#include "data/bytes.hpp"
#include "data/readers/common.hpp"
#include "data/readers/prepare.hpp"
#include "data/sample_identities.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

class RawImageSet : public DataSet, public KnowsIdentities {
 public:
  /// `identities`: of each image; empty: not known.
  RawImageSet(RawImages images, DataSetInfo info, std::vector<std::uint64_t> identities)
      : images_(std::move(images)), info_(std::move(info)), identities_(std::move(identities)) {
    std::int64_t first = 0;
    for (const auto& part : images_.parts) {
      first_.push_back(first);
      first += part.count;
    }
  }

  const DataSetInfo& info() const override { return info_; }
  std::int64_t size() const override { return images_.labels.size(); }
  std::int64_t label(std::int64_t id) const override { return images_.labels.at(id); }
  std::uint64_t bytes_read() const override { return *images_.counter; }
  void add_identities(std::int64_t id, std::vector<std::uint64_t>& out) const override {
    if (!identities_.empty()) out.push_back(identities_.at(id));
  }

  void read(std::int64_t id, Sample& out) const override {
    LOCKSTEP_CHECK(id >= 0 && id < size(), "the number of a sample");
    prepare_names(out, info_.features);
    set_label(out[1].tensor, images_.labels[id]);
    prepare(out[0].tensor, info_.features[0].spec);
    const auto pixels = out[0].tensor.as<std::uint8_t>();
    const auto index =
        static_cast<std::size_t>(std::upper_bound(first_.begin(), first_.end(), id) - first_.begin()) - 1;
    const RawPart& part = images_.parts[index];
    const auto at = part.begin + (id - first_[index]) * part.stride + part.pixels;
    if (!images_.planar) return part.source->read(at, std::as_writable_bytes(pixels));
    std::vector<std::uint8_t> planes(pixels.size());
    part.source->read(at, std::as_writable_bytes(std::span(planes)));
    const std::size_t channels = images_.shape[2], area = planes.size() / channels;
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t i = 0; i < area; ++i) pixels[i * channels + c] = planes[c * area + i];
    }
  }

 private:
  RawImages images_;
  DataSetInfo info_;
  std::vector<std::uint64_t> identities_;
  std::vector<std::int64_t> first_;  ///< id of each part's first record
};

void add_whole(const RawPart& part, Sha256& digest, std::string& identities) {
  constexpr std::uint64_t kPiece = 1 << 20;
  std::vector<std::byte> piece;
  const std::uint64_t length = part.count * part.stride,
                      step = std::max<std::uint64_t>(kPiece / part.stride, 1) * part.stride;
  for (std::uint64_t done = 0; done < length; done += piece.size()) {
    piece.resize(std::min(step, length - done));
    part.source->read(part.begin + done, piece);
    digest.add(piece);
    const std::string_view records(reinterpret_cast<const char*>(piece.data()), piece.size());
    for (std::size_t at = 0; at < records.size(); at += part.stride) {
      append(identities, identity_of(records.substr(at + part.pixels, part.stride - part.pixels)));
    }
  }
}

void add_spots(const RawPart& part, Sha256& digest) {
  std::vector<std::byte> record(part.stride);
  const std::int64_t spots = std::min(part.count, kSpotChecks);
  for (std::int64_t i = 0; i < spots; ++i) {
    part.source->read(part.begin + (i * part.count / spots) * part.stride, record);
    digest.add(record);
  }
}

std::uint64_t bytes_of(const RawImages& images) {
  std::uint64_t total = 0;
  for (const auto& part : images.parts) total += part.count * part.stride;
  return total;
}

/// And behind it, of a set that is read whole, the identities of its images.
std::string digest_of(const RawImages& images, bool whole) {
  Sha256 digest;
  digest.add(
      fmt::format("raw images 1 {} {} {} {}\n", images.shape[0], images.shape[1], images.shape[2], images.planar));
  digest.add(std::as_bytes(std::span(images.labels)));
  std::string identities;
  for (const auto& part : images.parts) whole ? add_whole(part, digest, identities) : add_spots(part, digest);
  return digest.hex() + identities;
}

/// From the files' numbers of classes to the set's, by name. Files whose names are others, or that have none, have the
/// numbers of the training set's files.
std::function<std::int32_t(std::int32_t)> numbers_in(const std::vector<std::string>& names,
                                                     const std::vector<std::string>& of_files) {
  const bool known = std::all_of(of_files.begin(), of_files.end(), [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  });
  if (names == of_files || !known) return [](std::int32_t label) { return label; };
  std::vector<std::int32_t> numbers;
  for (const auto& name : of_files) numbers.push_back(class_of(names, name, "the files' classes"));
  return [numbers](std::int32_t label) { return label < std::ssize(numbers) ? numbers[label] : label; };
}

}  // namespace

std::vector<Feature> raw_image_features(const Shape& image) {
  return {{"image", Feature::Kind::image, {DType::u8, image}}, {"label", Feature::Kind::label, {DType::i32, {}}}};
}

std::unique_ptr<DataSet> make_raw_images(RawImages images, const SourceOptions& source, const IndexOptions& options) {
  DataSetInfo info;
  info.format = images.format;
  info.source = images.source;
  info.features = raw_image_features(images.shape);
  info.class_names = classes_in_order(images.class_names, source, options);
  const auto numbers = numbers_in(info.class_names, images.class_names);
  info.class_counts.assign(info.class_names.size(), 0);
  for (std::size_t id = 0; id < images.labels.size(); ++id) {
    const auto label = images.labels[id];
    if (label < 0 || label >= std::ssize(info.class_names)) {
      throw Error(ExitCode::data, fmt::format("{}: sample {} has label {}; expected 0 ... {}", images.source, id, label,
                                              std::ssize(info.class_names) - 1));
    }
    ++info.class_counts[numbers(label)];
  }
  std::vector<std::string> unused;
  for (std::size_t c = 0; options.like == nullptr && c < info.class_counts.size(); ++c) {
    if (info.class_counts[c] == 0) unused.push_back(info.class_names[c]);
  }
  if (!unused.empty()) {
    info.warnings.push_back(fmt::format("{} of {} classes {} no sample: {}", unused.size(), info.class_names.size(),
                                        unused.size() == 1 ? "has" : "have", few_of(unused)));
  }
  if (images.labels.empty()) throw Error(ExitCode::data, fmt::format("{}: holds no image", images.source));
  info.content_in_digest = bytes_of(images) <= kFullDigestBytes;
  const std::string found =
      noted(options.notes, "digest of " + images.files, [&] { return digest_of(images, info.content_in_digest); });
  constexpr std::size_t kDigestLength = 64;
  info.digest = found.substr(0, kDigestLength);
  std::vector<std::uint64_t> identities((found.size() - info.digest.size()) / sizeof(std::uint64_t));
  std::memcpy(identities.data(), found.data() + info.digest.size(), identities.size() * sizeof(std::uint64_t));
  for (auto& label : images.labels) label = numbers(label);
  return std::make_unique<RawImageSet>(std::move(images), std::move(info), std::move(identities));
}

}  // namespace lockstep::data
