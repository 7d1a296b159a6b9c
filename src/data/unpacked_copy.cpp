#include "data/unpacked_copy.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "core/cache_directory.hpp"
#include "core/digest.hpp"
#include "core/files.hpp"
#include "data/archive_input.hpp"
#include "data/path.hpp"
#include "data/store/checksums.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;
using store::pieces_of;

constexpr std::size_t kUnpackBlock = 1 << 18;
constexpr std::uint64_t kCopyPiece = 16 << 10;  // bytes under one checksum: what a read of a few costs
static_assert(kUnpackBlock % kCopyPiece == 0);

/// The end of a copy.
struct CopyFooter {
  char magic[16] = {'L', 'O', 'C', 'K', 'S', 'T', 'E', 'P', '-', 'C', 'O', 'P', 'Y', '-', '1', '\n'};  // NOLINT
  std::uint64_t bytes = 0;                                                                             ///< of content
  bool operator==(const CopyFooter& other) const {
    return std::equal(std::begin(magic), std::end(magic), std::begin(other.magic)) && bytes == other.bytes;
  }
};

std::uint64_t copy_size(std::uint64_t bytes) {
  return bytes + pieces_of(bytes, kCopyPiece) * sizeof(std::uint32_t) + sizeof(CopyFooter);
}

/// Reads the content of a copy.
class CheckedCopy final : public ByteSource {
 public:
  CheckedCopy(const std::string& copy, const std::string& name, ByteCounter counter)
      : ByteSource(name), file_(copy, make_byte_counter(), name), counter_(std::move(counter)) {}

  /// Whether the file is a copy, and whole.
  [[nodiscard]] bool open() {
    CopyFooter footer;
    if (file_.size() < sizeof(footer)) return false;
    file_.read(file_.size() - sizeof(footer), std::as_writable_bytes(std::span(&footer, 1)));
    size_ = footer.bytes;
    CopyFooter expected;
    expected.bytes = size_;
    return footer == expected && size_ <= file_.size() && file_.size() == copy_size(size_);
  }
  std::uint64_t size() const override { return size_; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size_ || out.size() > size_ - offset) {
      throw Error(ExitCode::data,
                  fmt::format("{}: ends at byte {}; expected it to go on to {}", name(), size_, offset + out.size()));
    }
    if (out.empty()) return;
    const std::uint64_t first = offset / kCopyPiece, end = pieces_of(offset + out.size(), kCopyPiece);
    const std::uint64_t begin = first * kCopyPiece;
    std::vector<std::byte> pieces(std::min(size_, end * kCopyPiece) - begin);
    std::vector<std::uint32_t> sums(end - first);
    bool whole = true;
    try {
      file_.read(begin, pieces);
      file_.read(size_ + first * sizeof(std::uint32_t), std::as_writable_bytes(std::span(sums)));
    } catch (const Error& error) {
      if (error.code() != ExitCode::data) throw;
      whole = false;  // it has been cut off
    }
    const auto found = store::checksums_of(pieces, kCopyPiece);
    const auto differs = std::mismatch(found.begin(), found.end(), sums.begin()).first;
    if (!whole || differs != found.end()) {
      refuse(whole ? begin + (differs - found.begin()) * kCopyPiece : begin);
    }
    std::copy_n(pieces.begin() + (offset - begin), out.size(), out.begin());
    *counter_ += out.size();
  }

 private:
  [[noreturn]] void refuse(std::uint64_t at) const {
    std::error_code failed;
    fs::remove(file_.path(), failed);
    throw Error(failed ? ExitCode::data : ExitCode::infrastructure,
                fmt::format("{}: its unpacked copy {} is damaged between the bytes {} and {} (CRC-32); {}", name(),
                            file_.path(), at, std::min(at + kCopyPiece, size_),
                            failed ? "remove it, and run again" : "it has been removed: run again to make it anew"));
  }

  File file_;
  ByteCounter counter_;
  std::uint64_t size_ = 0;
};

std::unique_ptr<ByteSource> open_copy(const std::string& copy, const std::string& path, const ByteCounter& counter) {
  std::error_code failed;
  if (!fs::is_regular_file(copy, failed)) return nullptr;
  try {
    auto opened = std::make_unique<CheckedCopy>(copy, path, counter);
    if (!opened->open()) return nullptr;
    note_use(copy);
    return opened;
  } catch (const Error&) {  // it cannot be read: as good as none
    return nullptr;
  }
}

/// The copy, not what it is made of, is at fault.
struct Unwritable {
  std::string reason;
};

template <class Write>
auto or_unwritable(const Write& write) {
  try {
    return write();
  } catch (const Error& error) {
    throw Unwritable{error.what()};
  }
}

/// "unpacked-<hash of the path>-", then a hash of size and times.
std::pair<std::string, std::string> names_of(const std::string& path) {
  bool ignored = false;
  const std::string prefix = kUnpackedPrefix + sha256(whole_path(path)).substr(0, 16) + "-";
  return {prefix, prefix + sha256(stamp_of_file(path, ignored)).substr(0, 16)};
}

constexpr std::chrono::hours kAbandoned{24};  ///< a copy that nothing was added to for so long

void remove_older(const std::string& directory, const std::string& prefix, const std::string& newest) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(directory, failed)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || name == newest) continue;
    const bool abandoned = name.ends_with(kNewFileEnding) &&
                           fs::file_time_type::clock::now() - entry.last_write_time(failed) > kAbandoned && !failed;
    if (name.size() == newest.size() || abandoned) fs::remove(entry.path(), failed);
  }
}

[[noreturn]] void damaged(archive* handle, const std::string& path, const ArchiveInput& input) {
  input.rethrow();
  const char* text = archive_error_string(handle);
  throw Error(ExitCode::data,
              fmt::format("{}: damaged compressed file: {}", path, text != nullptr ? text : "no reason given"));
}

/// Removes the compression, whatever the content, and appends checksums and footer.
void unpack_into(const std::function<void(std::span<const std::byte>)>& write, const std::string& path,
                 ArchiveInput& input, const UnpackBudget& budget) {
  const ArchiveHandle handle(archive_read_new());
  LOCKSTEP_CHECK(handle != nullptr, "libarchive");
  support_compressions(handle.get());
  archive_read_support_format_raw(handle.get());
  archive_entry* entry = nullptr;
  if (!input.open(handle.get()) || archive_read_next_header(handle.get(), &entry) != ARCHIVE_OK) {
    damaged(handle.get(), path, input);
  }
  std::string block(kUnpackBlock, '\0');
  std::vector<std::uint32_t> sums;
  std::uint64_t total = 0;
  for (;;) {
    std::size_t filled = 0;  // libarchive may return less than is asked for
    while (filled < block.size()) {
      const auto got = archive_read_data(handle.get(), block.data() + filled, block.size() - filled);
      if (got < 0) damaged(handle.get(), path, input);
      if (got == 0) break;
      filled += got;
      budget.check(total + filled);
    }
    total += filled;
    write(std::as_bytes(std::span(block).first(filled)));
    const auto of_block = store::checksums_of(std::as_bytes(std::span(block).first(filled)), kCopyPiece);
    sums.insert(sums.end(), of_block.begin(), of_block.end());
    if (filled < block.size()) break;
  }
  CopyFooter footer;
  footer.bytes = total;
  write(std::as_bytes(std::span(sums)));
  write(std::as_bytes(std::span(&footer, 1)));
}

}  // namespace

std::unique_ptr<ByteSource> find_unpacked_copy(const std::string& path, const ByteCounter& counter,
                                               const UnpackLimits& limits) {
  if (limits.cache_directory.empty()) return nullptr;
  return open_copy(limits.cache_directory + "/" + names_of(path).second, path, counter);
}

UnpackedCopy make_unpacked_copy(const std::string& path, const ByteCounter& counter, const UnpackLimits& limits) {
  const std::string& directory = limits.cache_directory;
  if (directory.empty()) return {};
  const auto names = names_of(path);
  const std::string& name = names.second;
  ArchiveInput input(path, make_byte_counter());
  const UnpackBudget budget(path, input.size(), limits);
  remove_older(directory, names.first, name);
  try {
    const auto file = or_unwritable([&] {
      make_folders(directory);
      return std::make_unique<NewFile>(directory + "/" + name);
    });
    const auto write = [&](std::span<const std::byte> bytes) { or_unwritable([&] { file->write(bytes); }); };
    unpack_into(write, path, input, budget);
    or_unwritable([&] { file->commit(); });
  } catch (const Unwritable& problem) {
    return {nullptr, problem.reason};
  }
  auto copy = open_copy(directory + "/" + name, path, counter);
  make_room(directory, cache_limit(), directory + "/" + name);
  return {std::move(copy), copy ? "" : fmt::format("{}: the copy cannot be read", directory)};
}

}  // namespace lockstep::data
