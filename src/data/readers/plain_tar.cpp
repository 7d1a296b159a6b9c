// FileTree of an uncompressed tar. libarchive walks the headers once and says where a file's bytes begin; a file is
// then one read at its offset, or, if it is sparse, one for each of its extents.
#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/round_up.hpp"
#include "data/archive.hpp"
#include "data/archive_input.hpp"
#include "data/unpacked_names.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

constexpr std::uint64_t kTarBlock = 512;

class PlainTar : public FileTree {
 public:
  PlainTar(std::unique_ptr<ByteSource> file, const std::string& path) : FileTree(path), file_(std::move(file)) {}

  void list() override {
    ArchiveInput input(*file_, kTarBlock);  // no more than the headers
    const ArchiveHandle handle(archive_read_new());
    LOCKSTEP_CHECK(handle != nullptr && archive_read_support_format_tar(handle.get()) == ARCHIVE_OK, "libarchive");
    ArchiveMembers members(path(), input, handle.get());
    UnpackedNames names(path());
    while (members.next()) names.add(members.entry(), members.name(), [&] { return content_of(members); });
    if (end_ + kTarBlock > file_->size()) {
      add_warning(fmt::format("{}: a tar without its end mark; if it was cut off, files are missing", path()));
    }
    if (goes_on()) {
      add_warning(
          fmt::format("{}: what is behind the end mark of the tar is not read; if tars were joined, unpack them "
                      "and make one of all",
                      path()));
    }
    names.hand_over(*this);
    sort();
  }

  std::span<const std::byte> read(const Entry& entry, std::uint64_t from, std::uint64_t length,
                                  std::vector<std::byte>& scratch) const override {
    scratch.resize(length);
    const auto sparse = sparse_.find(entry.offset);
    if (sparse == sparse_.end()) {
      file_->read(entry.offset + from, scratch);
      return scratch;
    }
    std::fill(scratch.begin(), scratch.end(), std::byte{0});
    for (const Extent& extent : sparse->second) {
      const std::uint64_t begin = std::max(from, extent.begin);
      const std::uint64_t end = std::min(from + length, extent.begin + extent.length);
      if (begin >= end) continue;
      file_->read(extent.at + (begin - extent.begin), std::span(scratch).subspan(begin - from, end - begin));
    }
    return scratch;
  }

 private:
  /// Whether other bytes than zeros follow the last member soon.
  bool goes_on() const {
    constexpr std::uint64_t kLooked = 1 << 20;
    if (end_ >= file_->size()) return false;
    std::vector<std::byte> rest(std::min(kLooked, file_->size() - end_));
    file_->read(end_, rest);
    return std::any_of(rest.begin(), rest.end(), [](std::byte byte) { return byte != std::byte{0}; });
  }

  UnpackedNames::Content content_of(const ArchiveMembers& members) {
    archive_entry* const entry = members.entry();
    const std::uint64_t offset = archive_filter_bytes(members.handle(), 0);
    const std::uint64_t size = members.size();
    std::uint64_t stored = size;
    if (archive_entry_sparse_reset(entry) > 0) {
      UnpackBudget(path(), file_->size(), {}).check(sparse_bytes_ += size);
      stored = note_extents(entry, offset, members);
    }
    if (offset > file_->size() || stored > file_->size() - offset) {
      throw Error(ExitCode::data, fmt::format("{}: truncated tar: {} ends at byte {}, the archive at byte {}", path(),
                                              members.name(), offset + stored, file_->size()));
    }
    end_ = std::max(end_, offset + round_up(stored, kTarBlock));
    return {offset, size};
  }

  /// Of a sparse file; returns how many bytes are stored of it.
  std::uint64_t note_extents(archive_entry* entry, std::uint64_t offset, const ArchiveMembers& members) {
    auto& extents = sparse_[offset];
    std::uint64_t stored = 0;
    la_int64_t begin = 0, length = 0;
    while (archive_entry_sparse_next(entry, &begin, &length) == ARCHIVE_OK) {
      const std::uint64_t first = begin, bytes = length;
      if (begin < 0 || length < 0 || first > members.size() || bytes > members.size() - first) {
        throw Error(ExitCode::data,
                    fmt::format("{}: damaged tar: {} has bytes behind its end", path(), members.name()));
      }
      extents.push_back({first, bytes, offset + stored});
      stored += bytes;
    }
    return stored;
  }

  std::unique_ptr<ByteSource> file_;
  std::uint64_t end_ = 0;  ///< of the last member
  std::uint64_t sparse_bytes_ = 0;
};

}  // namespace

/// Whether the first header has the sum of its bytes in it; that field itself counts as spaces.
bool is_plain_tar(const File& file) {
  std::array<unsigned char, kTarBlock> header{};
  if (file.size() < kTarBlock) return false;
  file.read(0, std::as_writable_bytes(std::span(header)));
  constexpr std::size_t kSumBegin = 148, kSumEnd = 156;
  std::uint64_t sum = 0, noted = 0;
  bool empty = true;
  for (std::size_t i = 0; i < kTarBlock; ++i) {
    const bool of_sum = i >= kSumBegin && i < kSumEnd;
    empty = empty && header.at(i) == 0;
    sum += of_sum ? std::uint64_t{' '} : header.at(i);
    if (of_sum && header.at(i) >= '0' && header.at(i) <= '7') noted = noted * 8 + (header.at(i) - '0');
  }
  return !empty && sum == noted;
}

std::unique_ptr<FileTree> open_plain_tar(std::unique_ptr<ByteSource> file, const std::string& path) {
  return std::make_unique<PlainTar>(std::move(file), path);
}

}  // namespace lockstep::data
