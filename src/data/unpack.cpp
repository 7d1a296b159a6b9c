#include "data/unpack.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/digest.hpp"
#include "data/archive_input.hpp"
#include "data/path.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kUnpackBlock = 1 << 18;

/// A file that is removed unless it is kept.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string pattern) : path_(std::move(pattern)), descriptor_(::mkstemp(path_.data())) {
    if (descriptor_ < 0) problem_ = std::strerror(errno);
  }
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (descriptor_ >= 0 && !kept_) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(const char* bytes, std::size_t count) {
    while (count > 0 && problem_.empty()) {
      const auto written = ::write(descriptor_, bytes, count);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        problem_ = std::strerror(errno);
        return;
      }
      bytes += written;
      count -= static_cast<std::size_t>(written);
    }
  }
  void keep_as(const std::string& path) {
    if (!problem_.empty()) return;
    kept_ = ::fchmod(descriptor_, 0644) == 0 && ::rename(path_.c_str(), path.c_str()) == 0;
    if (!kept_) problem_ = std::strerror(errno);
  }
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  std::string path_;
  int descriptor_;
  std::string problem_;
  bool kept_ = false;
};

/// "unpacked-<hash of the path>-", then a hash of size and times.
std::pair<std::string, std::string> names_of(const std::string& path) {
  bool ignored = false;
  const std::string prefix = "unpacked-" + sha256(whole_path(path)).substr(0, 16) + "-";
  return {prefix, prefix + sha256(stamp_of_file(path, ignored)).substr(0, 16)};
}

void remove_older(const std::string& directory, const std::string& prefix, const std::string& newest) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(directory, failed)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.size() == newest.size() && name != newest) fs::remove(entry.path(), failed);
  }
}

[[noreturn]] void damaged(archive* handle, const std::string& path, const ArchiveInput& input) {
  input.rethrow();
  const char* text = archive_error_string(handle);
  throw Error(ExitCode::data,
              fmt::format("{}: damaged compressed file: {}", path, text != nullptr ? text : "no reason given"));
}

/// Removes the compression, whatever the content.
void unpack_into(TemporaryFile& out, const std::string& path, ArchiveInput& input, const UnpackBudget& budget) {
  const ArchiveHandle handle(archive_read_new());
  LOCKSTEP_CHECK(handle != nullptr, "libarchive");
  support_compressions(handle.get());
  archive_read_support_format_raw(handle.get());
  archive_entry* entry = nullptr;
  if (!input.open(handle.get()) || archive_read_next_header(handle.get(), &entry) != ARCHIVE_OK) {
    damaged(handle.get(), path, input);
  }
  std::string block(kUnpackBlock, '\0');
  std::uint64_t total = 0;
  for (;;) {
    const auto got = archive_read_data(handle.get(), block.data(), block.size());
    if (got < 0) damaged(handle.get(), path, input);
    if (got == 0 || !out.problem().empty()) return;
    total += static_cast<std::uint64_t>(got);
    budget.check(total);
    out.write(block.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

void FreeArchive::operator()(::archive* handle) const {
  archive_read_free(handle);
}

void support_compressions(::archive* handle) {
  for (auto* const filter :
       {archive_read_support_filter_gzip, archive_read_support_filter_bzip2, archive_read_support_filter_compress,
        archive_read_support_filter_xz, archive_read_support_filter_lzma, archive_read_support_filter_lz4,
        archive_read_support_filter_zstd}) {
    filter(handle);  // if this libarchive lacks one, an error occurs when a file needs it
  }
}

UnpackBudget::UnpackBudget(std::string path, std::uint64_t packed_bytes, const UnpackLimits& limits)
    : path_(std::move(path)),
      packed_bytes_(packed_bytes),
      max_(std::max(limits.small, packed_bytes * limits.expansion)) {}

void UnpackBudget::check(std::uint64_t unpacked_bytes) const {
  if (unpacked_bytes <= max_) return;
  throw Error(
      ExitCode::data,
      fmt::format("{}: {} bytes that unpack to more than {}, as a decompression bomb does; if the data are sound, "
                  "unpack the file yourself",
                  path_, packed_bytes_, max_));
}

std::optional<std::string> find_unpacked_copy(const std::string& path, const UnpackLimits& limits) {
  const auto [prefix, name] = names_of(path);
  if (limits.cache_directory.empty() || name.empty()) return std::nullopt;
  std::string copy = limits.cache_directory + "/" + name;
  std::error_code failed;
  return fs::is_regular_file(copy, failed) ? std::optional(std::move(copy)) : std::nullopt;
}

UnpackedCopy make_unpacked_copy(const std::string& path, const UnpackLimits& limits) {
  const auto [prefix, name] = names_of(path);
  const std::string& directory = limits.cache_directory;
  if (directory.empty() || name.empty()) return {};
  std::error_code failed;
  fs::create_directories(directory, failed);
  ArchiveInput input(path, make_byte_counter());
  const UnpackBudget budget(path, input.size(), limits);
  remove_older(directory, prefix, name);
  TemporaryFile file(directory + "/" + prefix + "XXXXXX");
  if (file.problem().empty()) unpack_into(file, path, input, budget);
  file.keep_as(directory + "/" + name);
  if (!file.problem().empty()) return {"", fmt::format("{}: {}", directory, file.problem())};
  return {directory + "/" + name, ""};
}

void refuse_to_hold(const std::string& path, const UnpackLimits& limits, const std::string& problem) {
  throw Error(
      ExitCode::data,
      fmt::format("{}: unpacks to more than {} MiB, which would be held in the memory of each rank{}. Unpack it "
                  "yourself, or use a plain .tar or `lockstep data pack`",
                  path, limits.held_without_copy >> 20,
                  problem.empty() ? "" : fmt::format(" (no copy on disk: {})", problem)));
}

}  // namespace lockstep::data
