#include "data/pack.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string_view>

#include "core/files.hpp"
#include "data/pack_format.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

/// A new file, written through a buffer.
class Output {
 public:
  explicit Output(const std::string& path) : path_(path), file_(path) {}

  std::uint64_t size() const { return size_ + buffer_.size(); }

  void append(const std::string& bytes) {
    buffer_ += bytes;
    if (buffer_.size() >= (std::size_t{1} << 20)) flush();
  }

  void flush() {
    file_.write(std::as_bytes(std::span(buffer_)));
    size_ += buffer_.size();
    buffer_.clear();
  }

  /// Replaces the first bytes, and gives the file its name.
  std::string finish(const std::string& header) {
    if (::lseek(file_.file().descriptor(), 0, SEEK_SET) != 0) {
      throw Error(ExitCode::infrastructure, fmt::format("{}: {}", path_, std::strerror(errno)));
    }
    file_.write(std::as_bytes(std::span(header)));
    file_.commit();
    return path_;
  }

 private:
  std::string path_;
  NewFile file_;
  std::string buffer_;
  std::uint64_t size_ = 0;
};

class SegmentWriter {
 public:
  explicit SegmentWriter(const std::string& path) : output_(path) {
    output_.append(std::string(kPackHeaderBytes, '\0'));
  }

  void add(PackRecord record, const std::string& payload) {
    record.offset = output_.size();
    record.checksum = crc32_of(std::as_bytes(std::span(payload)));
    output_.append(payload);
    append_record(index_, record);
    ++samples_;
  }

  std::uint64_t size() const { return output_.size() + index_.size(); }

  void end(const DataSetInfo& info) {
    const std::string tail = write_meta(info, samples_);
    const std::uint64_t offset = output_.size();
    output_.append(tail);
    output_.append(index_);
    const auto checksum = crc32_of(std::as_bytes(std::span(index_)), crc32_of(std::as_bytes(std::span(tail))));
    output_.append(write_footer({offset, tail.size(), index_.size(), checksum}));
    output_.flush();
  }

  /// Only now is the number of segments known.
  std::string finish(std::uint32_t segment, std::size_t segments) {
    return output_.finish(write_header({segment, static_cast<std::uint32_t>(segments)}));
  }

 private:
  Output output_;
  std::string index_;
  std::int64_t samples_ = 0;
};

/// The payloads of a sample, in its stored form if the source can provide that.
std::string encode(const DataSet& set, std::int64_t id, PackRecord& record) {
  std::vector<EncodedFeature> features;
  if (!set.read_encoded(id, features)) {
    Sample sample;
    set.read(id, sample);
    features.clear();
    for (auto& named : sample) features.push_back({false, {}, std::move(named.tensor)});
  }
  std::string payload;
  for (const auto& feature : features) {
    const std::size_t before = payload.size();
    if (feature.is_file) {
      payload.append(reinterpret_cast<const char*>(feature.file.data()), feature.file.size());
    } else {
      append_tensor(payload, feature.tensor);
    }
    const std::size_t length = payload.size() - before;
    if (length > std::numeric_limits<std::uint32_t>::max()) {
      throw Error(ExitCode::data,
                  fmt::format("{}: {} bytes; a packed feature takes at most 4 GiB", record.name, length));
    }
    record.payloads.push_back(
        {feature.is_file ? PackEncoding::file : PackEncoding::tensor, static_cast<std::uint32_t>(length)});
  }
  return payload;
}

std::string segment_path(const std::string& path, std::size_t segment) {
  return segment == 0 ? path : fmt::format("{}.{}", path, segment);
}

void check_free(const std::string& path) {
  if (std::filesystem::exists(path)) {
    throw Error(ExitCode::cannot_create, fmt::format("{}: exists already; remove it, or choose another name", path));
  }
}

}  // namespace

std::vector<std::string> pack(const DataSet& set, const std::string& path, const PackOptions& options) {
  for (const auto& feature : set.info().features) {
    if (feature.kind == Feature::Kind::tokens) {
      throw Error(ExitCode::usage, fmt::format("{}: text and token files are not packed: a rank reads only its windows "
                                               "of a token file",
                                               set.info().source));
    }
    if (feature.kind == Feature::Kind::weight) {
      throw Error(ExitCode::usage,
                  fmt::format("{}: weights are not packed; leave them out here, and give the pack their "
                              "file: packed: {{path: ..., weights: ...}}",
                              set.info().source));
    }
  }
  if (!set.info().columns.empty()) {
    throw Error(ExitCode::usage,
                fmt::format("{}: tables are not packed: a rank reads all of one, once", set.info().source));
  }
  std::vector<std::unique_ptr<SegmentWriter>> segments;
  for (std::int64_t id = 0; id < set.size(); ++id) {
    const bool full = !segments.empty() && segments.back()->size() >= static_cast<std::uint64_t>(options.segment_bytes);
    if (full) segments.back()->end(set.info());
    if (full || segments.empty()) {
      const std::string next = segment_path(path, segments.size());
      check_free(next);
      segments.push_back(std::make_unique<SegmentWriter>(next));
    }
    PackRecord record;
    record.name = set.name(id);
    record.label = set.label(id);
    const std::string payload = encode(set, id, record);
    segments.back()->add(std::move(record), payload);
    if (options.progress) options.progress(id + 1, set.size());
  }
  LOCKSTEP_CHECK(!segments.empty(), "a data set without samples");
  segments.back()->end(set.info());
  std::vector<std::string> paths;
  for (std::uint32_t i = 0; i < segments.size(); ++i) paths.push_back(segments[i]->finish(i, segments.size()));
  return paths;
}

}  // namespace lockstep::data
