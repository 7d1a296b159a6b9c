// Files written by `lockstep data pack`. A path is the first segment of a set; the others are found beside it. Opening
// reads the indexes; a sample is one read, checked against its checksum.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/digest.hpp"
#include "data/image_file.hpp"
#include "data/pack_format.hpp"
#include "data/readers/common.hpp"
#include "data/readers/file.hpp"
#include "data/readers/prepare.hpp"
#include "data/readers/readers.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

struct PackedFile {
  File file;
  PackHeader header;
  DataSetInfo info;
  std::vector<PackRecord> records;
  std::vector<std::int32_t> classes;  ///< by class of the file: class of the set

  PackedFile(const std::string& path, const ByteCounter& counter) : file(path, counter) {
    try {
      load();
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
    }
  }

  std::int32_t label(const PackRecord& record) const {
    return record.label < 0 || classes.empty() ? record.label : classes.at(record.label);
  }

 private:
  std::vector<std::byte> bytes(std::uint64_t offset, std::uint64_t length) const {
    std::vector<std::byte> out(length);
    file.read(offset, out);
    return out;
  }

  void load() {
    header = read_header(bytes(0, std::min<std::uint64_t>(file.size(), kPackHeaderBytes)));
    if (file.size() < kPackHeaderBytes + kPackFooterBytes)
      throw Error(ExitCode::data, "truncated packed file: no end mark");
    const PackFooter footer = read_footer(bytes(file.size() - kPackFooterBytes, kPackFooterBytes));
    const std::uint64_t room = file.size() - kPackHeaderBytes - kPackFooterBytes;
    if (footer.meta_length > room || footer.index_length > room - footer.meta_length ||
        footer.meta_offset != file.size() - kPackFooterBytes - footer.meta_length - footer.index_length) {
      throw Error(ExitCode::data, "damaged packed file: its parts do not add up to its length");
    }
    const auto tail = bytes(footer.meta_offset, footer.meta_length + footer.index_length);
    if (crc32_of(tail) != footer.checksum)
      throw Error(ExitCode::data, "damaged packed file: the index's checksum differs");
    std::int64_t samples = 0;
    const std::span all(tail);
    info = read_meta(all.first(footer.meta_length), samples);
    records = read_index(all.subspan(footer.meta_length), samples, info.features.size());
    for (const auto& record : records) {
      const bool inside = record.offset <= footer.meta_offset && record.length() <= footer.meta_offset - record.offset;
      if (!inside) throw Error(ExitCode::data, fmt::format("damaged packed file: {} lies outside of it", record.name));
      for (std::size_t i = 0; i < record.payloads.size(); ++i) {
        const bool encoded = record.payloads[i].encoding == PackEncoding::file;
        if (!encoded || info.features[i].kind == Feature::Kind::image) continue;
        throw Error(ExitCode::data, fmt::format("damaged packed file: '{}' of {} is stored as an image",
                                                info.features[i].name, record.name));
      }
      if (record.label < -1 || record.label >= std::ssize(info.class_names)) {
        throw Error(ExitCode::data, fmt::format("damaged packed file: {} has label {} of {} classes", record.name,
                                                record.label, info.class_names.size()));
      }
    }
  }
};

class PackedSet : public DataSet {
 public:
  PackedSet(std::vector<std::unique_ptr<PackedFile>> segments, DataSetInfo info, ByteCounter counter)
      : segments_(std::move(segments)), info_(std::move(info)), counter_(std::move(counter)) {
    for (const auto& segment : segments_) {
      size_ += std::ssize(segment->records);
      ends_.push_back(size_);
    }
  }

  const DataSetInfo& info() const override { return info_; }
  std::int64_t size() const override { return size_; }
  std::uint64_t bytes_read() const override { return *counter_; }
  std::string name(std::int64_t id) const override { return find(id).record.name; }
  std::int64_t label(std::int64_t id) const override {
    const auto [segment, record] = find(id);
    return segment.label(record);
  }

  void read(std::int64_t id, Sample& out) const override {
    prepare_names(out, info_.features);
    for_each_payload(id, [&](std::size_t i, PackEncoding encoding, std::span<const std::byte> payload) {
      const Feature& feature = info_.features[i];
      if (encoding == PackEncoding::file) {
        decode_image(payload, feature.spec.shape.back(), out[i].tensor);
        check_shape(feature, out[i].tensor);
      } else {
        read_value(id, feature, payload, out[i].tensor);
      }
    });
  }

  bool read_encoded(std::int64_t id, std::vector<EncodedFeature>& out) const override {
    out.resize(info_.features.size());
    for_each_payload(id, [&](std::size_t i, PackEncoding encoding, std::span<const std::byte> payload) {
      out[i].is_file = encoding == PackEncoding::file;
      out[i].file.assign(payload.begin(), payload.end());
      if (!out[i].is_file) read_value(id, info_.features[i], payload, out[i].tensor);
    });
    return true;
  }

 private:
  struct Found {
    const PackedFile& segment;
    const PackRecord& record;
  };

  Found find(std::int64_t id) const {
    LOCKSTEP_CHECK(id >= 0 && id < size_, "the number of a sample");
    const std::size_t index = std::upper_bound(ends_.begin(), ends_.end(), id) - ends_.begin();
    const PackedFile& segment = *segments_[index];
    const std::int64_t first = ends_[index] - std::ssize(segment.records);
    return {segment, segment.records[id - first]};
  }

  static void check_shape(const Feature& feature, const Tensor& found) {
    const Shape &expected = feature.spec.shape, &shape = found.shape();
    const bool same = std::equal(expected.begin(), expected.end(), shape.begin(), shape.end(),
                                 [](auto wanted, auto extent) { return wanted == -1 || wanted == extent; });
    if (same) return;
    throw Error(ExitCode::data,
                fmt::format("'{}' of shape {}; expected {}", feature.name, to_string(shape), to_string(expected)));
  }

  void read_value(std::int64_t id, const Feature& feature, std::span<const std::byte> payload, Tensor& out) const {
    read_tensor(payload, feature.spec.dtype, out);
    check_shape(feature, out);
    // The training set may number the classes differently.
    if (feature.kind == Feature::Kind::label && feature.name == "label") set_label(out, label(id));
  }

  template <class Body>
  void for_each_payload(std::int64_t id, Body body) const {
    const auto [segment, record] = find(id);
    std::vector<std::byte> bytes(record.length());
    segment.file.read(record.offset, bytes);
    try {
      if (crc32_of(bytes) != record.checksum) throw Error(ExitCode::data, "the checksum differs: the file is damaged");
      std::size_t at = 0;
      for (std::size_t i = 0; i < record.payloads.size(); ++i) {
        body(i, record.payloads[i].encoding, std::span<const std::byte>(bytes).subspan(at, record.payloads[i].length));
        at += record.payloads[i].length;
      }
    } catch (const Error& error) {
      const std::string named = fmt::format("{}: {}: {}", segment.file.path(), record.name, error.what());
      if (error.code() == ExitCode::data) throw BadSample(named);
      throw Error(error.code(), named);
    }
  }

  std::vector<std::unique_ptr<PackedFile>> segments_;
  DataSetInfo info_;
  ByteCounter counter_;
  std::vector<std::int64_t> ends_;  ///< by segment: number of samples up to its end
  std::int64_t size_ = 0;
};

/// Adds the first segment and those that follow it. A later segment in the list is skipped, because its first one adds
/// it.
void add_path(const std::string& path, const std::set<std::string>& given, const ByteCounter& counter,
              IndexNotes* notes, std::vector<std::unique_ptr<PackedFile>>& segments) {
  if (notes != nullptr) notes->made_from_file(path);
  auto first = std::make_unique<PackedFile>(path, counter);
  const PackHeader header = first->header;
  if (header.segment > 0) {
    const std::string suffix = fmt::format(".{}", header.segment);
    const std::string whole = path.ends_with(suffix) ? path.substr(0, path.size() - suffix.size()) : "";
    if (given.contains(whole)) return;
    throw Error(ExitCode::data, fmt::format("{}: segment {} of {}; name the first one{}", path, header.segment + 1,
                                            header.segments, whole.empty() ? "" : ", " + whole));
  }
  segments.push_back(std::move(first));
  const std::string digest = segments.back()->info.digest;
  for (std::uint32_t i = 1; i < header.segments; ++i) {
    const std::string next = fmt::format("{}.{}", path, i);
    if (notes != nullptr) notes->made_from_file(next);
    segments.push_back(std::make_unique<PackedFile>(next, counter));
    const auto& found = *segments.back();
    if (found.header.segment != i || found.info.digest != digest) {
      throw Error(ExitCode::data, fmt::format("{}: belongs to another pack than {}", found.file.path(), path));
    }
  }
}

bool same_features(const std::vector<Feature>& a, const std::vector<Feature>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Feature& x, const Feature& y) {
    return x.name == y.name && x.kind == y.kind && x.spec.dtype == y.spec.dtype;
  });
}

/// One info for all segments: shapes that differ become -1, classes are merged by name.
DataSetInfo merge(std::vector<std::unique_ptr<PackedFile>>& segments, const SourceOptions& source,
                  const IndexOptions& options) {
  DataSetInfo info = segments.front()->info;
  std::set<std::string> names(info.class_names.begin(), info.class_names.end());
  std::string digests = info.digest;
  for (const auto& segment : segments) {
    if (!same_features(segment->info.features, info.features)) {
      throw Error(ExitCode::data, fmt::format("{}: its features differ from those of {}", segment->file.path(),
                                              segments.front()->file.path()));
    }
    for (std::size_t i = 0; i < info.features.size(); ++i) {
      Shape& shape = info.features[i].spec.shape;
      const Shape& other = segment->info.features[i].spec.shape;
      if (shape != other && shape.size() == 3) shape = {-1, -1, std::max(shape[2], other[2])};
    }
    const auto& own = segment->info.class_names;
    if (own != info.class_names) names.insert(own.begin(), own.end());
    if (segment->info.digest != info.digest) digests += segment->info.digest;
  }
  if (names.size() != info.class_names.size()) info.class_names.assign(names.begin(), names.end());
  info.class_names = classes_in_order(info.class_names, source, options);
  for (auto& feature : info.features) {
    if (feature.kind != Feature::Kind::image) continue;
    feature.spec.shape.back() =
        channels_like(options.like, feature.name, feature.spec.shape.back(), describe(source.paths));
  }
  if (digests != info.digest) info.digest = sha256(digests);
  info.format = "packed (" + info.format + ")";
  info.source = describe(source.paths);
  return info;
}

}  // namespace

std::unique_ptr<DataSet> open_packed(const SourceOptions& source, const IndexOptions& options) {
  const auto counter = make_byte_counter();
  const std::set<std::string> given(source.paths.begin(), source.paths.end());
  std::vector<std::unique_ptr<PackedFile>> segments;
  for (const auto& path : source.paths) add_path(path, given, counter, options.notes, segments);
  DataSetInfo info = merge(segments, source, options);
  info.class_counts.assign(info.class_names.size(), 0);
  std::uint64_t total = 0;
  for (const auto& segment : segments) total += segment->file.size();
  info.content_in_digest = total <= kFullDigestBytes;
  for (auto& segment : segments) {
    if (segment->info.class_names != info.class_names) {
      for (const auto& name : segment->info.class_names) {
        segment->classes.push_back(class_of(info.class_names, name, segment->file.path()));
      }
    }
    for (const auto& record : segment->records) {
      if (record.label >= 0) ++info.class_counts.at(segment->label(record));
    }
  }
  return std::make_unique<PackedSet>(std::move(segments), std::move(info), counter);
}

}  // namespace lockstep::data
