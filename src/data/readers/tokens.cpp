// Token files: uint16, little-endian, nothing else. Several files are one sequence of tokens. A window is one read (two
// across a file boundary), so a rank reads only its own.
#include <fmt/format.h>

#include <algorithm>

#include "core/digest.hpp"
#include "data/bytes.hpp"
#include "data/readers/common.hpp"
#include "data/readers/file.hpp"
#include "data/readers/readers.hpp"
#include "data/readers/token_windows.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

class TokenFiles : public TokenSource {
 public:
  explicit TokenFiles(const std::vector<std::string>& paths) {
    for (const auto& path : paths) {
      files_.push_back(std::make_unique<File>(path, counter_));
      if (files_.back()->size() % 2 != 0) {
        throw Error(ExitCode::data,
                    fmt::format("{}: {} bytes; tokens of 16 bits take an even number", path, files_.back()->size()));
      }
      size_ += static_cast<std::int64_t>(files_.back()->size() / 2);
      ends_.push_back(size_);
    }
  }

  [[nodiscard]] std::int64_t size() const override { return size_; }
  [[nodiscard]] std::uint64_t bytes_read() const override { return *counter_; }

  void read(std::int64_t first, std::span<std::int32_t> out) const override {
    std::vector<std::uint16_t> raw(out.size());
    read_raw(first, raw);
    std::copy(raw.begin(), raw.end(), out.begin());
  }

  void read_raw(std::int64_t first, std::span<std::uint16_t> out) const {
    auto file = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), first) - ends_.begin());
    while (!out.empty()) {
      LOCKSTEP_CHECK(file < files_.size(), "the position of a token");
      const auto count = static_cast<std::size_t>(std::min<std::int64_t>(std::ssize(out), ends_[file] - first));
      const std::int64_t begin = file == 0 ? 0 : ends_[file - 1];
      files_[file]->read(static_cast<std::uint64_t>(first - begin) * 2, std::as_writable_bytes(out.first(count)));
      out = out.subspan(count);
      first += static_cast<std::int64_t>(count);
      ++file;
    }
  }

 private:
  ByteCounter counter_ = make_byte_counter();
  std::vector<std::unique_ptr<File>> files_;
  std::vector<std::int64_t> ends_;  ///< by file: number of tokens up to its end
  std::int64_t size_ = 0;
};

/// Reads all of a small set, or spots of a large one; returns the largest token seen (-1: none) and the digest.
std::string scan(const TokenFiles& files) {
  Sha256 digest;
  digest.add(fmt::format("tokens 1 {}\n", files.size()));
  constexpr std::int64_t kPiece = 1 << 19;
  const bool whole = static_cast<std::uint64_t>(files.size()) * 2 <= kFullDigestBytes;
  const std::int64_t step = whole ? kPiece : files.size() / kSpotChecks;
  const std::int64_t length = whole ? kPiece : 2048;
  std::vector<std::uint16_t> piece;
  std::int32_t most = -1;
  for (std::int64_t at = 0; at < files.size(); at += step) {
    piece.resize(static_cast<std::size_t>(std::min(length, files.size() - at)));
    files.read_raw(at, piece);
    digest.add(std::as_bytes(std::span(piece)));
    for (const auto token : piece) most = std::max<std::int32_t>(most, token);
  }
  std::string found;
  append(found, most);
  return found + digest.hex();
}

}  // namespace

std::unique_ptr<DataSet> open_tokens(const SourceOptions& source, const IndexOptions& options) {
  if (options.notes != nullptr) {
    for (const auto& path : source.paths) options.notes->made_from_file(path);
  }
  auto files = std::make_shared<TokenFiles>(source.paths);
  DataSetInfo info;
  info.format = "tokens of 16 bits";
  info.source = describe(source.paths);
  const std::string found = noted(options.notes, "tokens", [&] { return scan(*files); });
  ByteReader reader(found, "noted tokens end too early");
  const auto most = reader.value<std::int32_t>();
  info.digest = reader.text(reader.rest().size());
  info.content_in_digest = static_cast<std::uint64_t>(files->size()) * 2 <= kFullDigestBytes;
  info.vocabulary = info.content_in_digest ? most + 1 : 0;
  if (options.like != nullptr) {
    info.vocabulary = options.like->vocabulary - (source.masked > 0 ? 1 : 0);  // without the mask
    if (info.vocabulary > 0 && most >= info.vocabulary) {
      throw Error(ExitCode::data,
                  fmt::format("{}: token {}; the training set's are below {}", info.source, most, info.vocabulary));
    }
  }
  const std::int64_t size = files->size();
  return std::make_unique<TokenWindows>(std::move(files), std::move(info),
                                        TokenWindows::Options{source.context, source.masked}, 0, size);
}

}  // namespace lockstep::data
