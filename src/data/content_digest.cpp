#include "data/content_digest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/digest.hpp"
#include "core/remote_path.hpp"
#include "data/bytes.hpp"
#include "data/path.hpp"
#include "data/readers/file.hpp"
#include "data/readers/token_windows.hpp"

namespace lockstep::data {
namespace {

void add(std::span<const std::byte> bytes, Sha256& digest) {
  std::string length;  // delimits values, so that no byte can move from one value to the next
  append(length, static_cast<std::uint64_t>(bytes.size()));
  digest.add(length);
  digest.add(bytes);
}

class SampleDigest {
 public:
  explicit SampleDigest(const DataSet& set) : set_(set) {}

  void add_sample(std::int64_t id, Sha256& digest) {
    try {
      read(id);
    } catch (const BadSample&) {
      return add({}, digest);
    }
    for (std::size_t i = 0; i < encoded_.size(); ++i) {
      if (set_.info().features.at(i).kind == Feature::Kind::label) continue;
      const Tensor& tensor = encoded_[i].tensor;
      add(encoded_[i].is_file ? std::span<const std::byte>(encoded_[i].file)
                              : std::span<const std::byte>(tensor.bytes(), tensor.spec().bytes()),
          digest);
    }
  }

 private:
  void read(std::int64_t id) {
    if (set_.read_encoded(id, encoded_)) return;
    set_.read(id, sample_);
    encoded_.resize(sample_.size());
    for (std::size_t i = 0; i < sample_.size(); ++i) std::swap(encoded_[i].tensor, sample_[i].tensor);
  }

  const DataSet& set_;
  std::vector<EncodedFeature> encoded_;  // kept for its memory, which is reused
  Sample sample_;
};

bool add_samples(const DataSet& set, const std::function<bool(double)>& go_on, Sha256& digest) {
  SampleDigest samples(set);
  for (std::int64_t id = 0; id < set.size(); ++id) {
    if (!go_on(static_cast<double>(id) / set.size())) return false;
    samples.add_sample(id, digest);
  }
  return true;
}

// Not by windows: those of a set omit the last few tokens, which are read in other epochs.
bool add_tokens(const TokenWindows& set, const std::function<bool(double)>& go_on, Sha256& digest) {
  constexpr std::int64_t kPiece = 1 << 19;
  std::vector<std::int32_t> piece;
  std::vector<std::uint16_t> narrow;
  for (std::int64_t at = 0; at < set.tokens(); at += kPiece) {
    if (!go_on(static_cast<double>(at) / set.tokens())) return false;
    piece.resize(std::min(kPiece, set.tokens() - at));
    set.read_tokens(at, piece);
    if (*std::max_element(piece.begin(), piece.end()) > 0xFFFF) {
      digest.add(std::as_bytes(std::span(piece)));
      continue;
    }
    narrow.assign(piece.begin(), piece.end());
    digest.add(std::as_bytes(std::span(narrow)));
  }
  return true;
}

std::string file_digest(const std::string& path, bool whole) {
  const File file(path, make_byte_counter());
  constexpr std::uint64_t kPiece = 1 << 16, kPieces = 16;
  const std::uint64_t size = file.size();
  const std::uint64_t step = whole ? kPiece : std::max(kPiece, size / kPieces);
  Sha256 digest;
  digest.add(fmt::format("{}\n", size));
  std::vector<std::byte> piece;
  for (std::uint64_t at = 0; at < size; at += step) {
    piece.resize(std::min(kPiece, size - at));
    file.read(at, piece);
    digest.add(piece);
  }
  return digest.hex();
}

std::string names_digest(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  std::error_code failed;
  const auto options = fs::directory_options::follow_directory_symlink;
  for (auto at = fs::recursive_directory_iterator(folder, options, failed);
       !failed && at != fs::recursive_directory_iterator(); at.increment(failed)) {
    std::error_code none;
    const auto size = at->is_regular_file(none) ? at->file_size(none) : 0;
    names.push_back(fmt::format("{} {}\n", at->path().lexically_relative(folder).string(), none ? 0 : size));
  }
  std::sort(names.begin(), names.end());
  Sha256 digest;
  for (const auto& name : names) digest.add(name);
  return digest.hex();
}

}  // namespace

std::optional<std::string> content_digest(const DataSet& set, const std::function<bool(double)>& go_on) {
  Sha256 digest;
  const auto* tokens = dynamic_cast<const TokenWindows*>(&set);
  const bool whole = tokens != nullptr ? add_tokens(*tokens, go_on, digest) : add_samples(set, go_on, digest);
  return whole ? std::optional(digest.hex()) : std::nullopt;
}

std::string path_digest(const std::string& path, bool whole) {
  const PathKind kind = kind_of(path);
  bool ignored = false;
  if (is_remote(path)) {
    return sha256(kind == PathKind::folder ? stamp_of_folder(path, ignored) : stamp_of_file(path, ignored));
  }
  return kind == PathKind::folder ? names_digest(path) : file_digest(path, whole);
}

}  // namespace lockstep::data
