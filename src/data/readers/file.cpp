#include "data/readers/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/errno_code.hpp"
#include "core/remote_path.hpp"
#include "data/gunzip.hpp"
#include "data/unpacked_copy.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

/// Nothing if that would exceed `max_bytes`.
std::optional<std::vector<std::byte>> gunzip(const std::vector<std::byte>& packed, const std::string& path,
                                             const UnpackLimits& limits, std::uint64_t max_bytes) {
  const UnpackBudget budget(path, packed.size(), limits);
  Gunzip gunzip(path);
  std::span<const std::byte> rest = packed;
  std::vector<std::byte> out(std::min<std::size_t>(std::max<std::size_t>(packed.size() * 4, 1 << 16), max_bytes + 1));
  std::size_t filled = 0;
  for (;;) {
    filled += gunzip.unpack(rest, std::span(out).subspan(filled));
    budget.check(filled);
    if (filled > max_bytes) return std::nullopt;
    if (filled < out.size()) break;
    out.resize(std::min<std::size_t>(out.size() * 2, max_bytes + 1));
  }
  gunzip.finish();
  out.resize(filled);
  return out;
}

class HeldBytes final : public ByteSource {
 public:
  HeldBytes(std::string name, std::vector<std::byte> bytes) : ByteSource(std::move(name)), bytes_(std::move(bytes)) {}
  std::uint64_t size() const override { return bytes_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    LOCKSTEP_CHECK(offset <= bytes_.size() && out.size() <= bytes_.size() - offset, name());
    std::copy_n(bytes_.begin() + offset, out.size(), out.begin());
  }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

File::File(std::string path, ByteCounter counter, std::string name)
    : ByteSource(std::move(name)), path_(std::move(path)), counter_(std::move(counter)) {
  if (is_remote(path_)) {
    object_ = std::make_unique<store::Object>(path_);
    size_ = object_->size();
    return;
  }
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe may never get a writer
  if (descriptor_ < 0) {
    const int error = errno;
    throw Error(code_of_errno(error, ExitCode::data), fmt::format("{}: {}", path_, std::strerror(error)));
  }
  struct stat status {};
  const bool regular = ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
  if (!regular) {
    ::close(descriptor_);
    throw Error(ExitCode::data, fmt::format("{}: expected a file, found {}", path_,
                                            S_ISDIR(status.st_mode)    ? "a folder"
                                            : S_ISFIFO(status.st_mode) ? "a pipe; write it to a file, and name that"
                                                                       : "something else"));
  }
  size_ = status.st_size;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void File::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (object_ && (offset > size_ || out.size() > size_ - offset)) {
    throw Error(ExitCode::data,
                fmt::format("{}: ends at byte {}; expected it to go on to {}", path_, size_, offset + out.size()));
  }
  if (object_) object_->read(offset, out);
  std::size_t filled = object_ ? out.size() : 0;
  while (filled < out.size()) {
    const auto got =
        ::pread(descriptor_, out.data() + filled, out.size() - filled, static_cast<off_t>(offset + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(ExitCode::infrastructure, fmt::format("{}: {}", path_, std::strerror(errno)));
    if (got == 0) {
      throw Error(ExitCode::data, fmt::format("{}: ends at byte {}; expected {} more. Was it changed while in use?",
                                              path_, offset + filled, out.size() - filled));
    }
    filled += got;
  }
  *counter_ += filled;
}

FileState File::state(bool stable_inodes) const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) {
    throw Error(ExitCode::infrastructure, fmt::format("{}: {}", path_, std::strerror(errno)));
  }
  return state_of(status, stable_inodes);
}

bool is_gzip(const ByteSource& file) {
  std::array<std::byte, 2> magic{};
  if (file.size() < magic.size()) return false;
  file.read(0, magic);
  return magic[0] == std::byte{0x1F} && magic[1] == std::byte{0x8B};
}

std::optional<std::vector<std::byte>> read_unpacked(const File& file, const UnpackLimits& limits,
                                                    std::uint64_t max_bytes) {
  std::vector<std::byte> bytes(file.size());
  file.read(0, bytes);
  return gunzip(bytes, file.path(), limits, max_bytes);
}

std::vector<std::byte> read_whole(const File& file, const UnpackLimits& limits) {
  if (is_gzip(file)) {
    auto bytes = read_unpacked(file, limits, limits.held_without_copy);
    if (!bytes) refuse_to_hold(file.path(), limits, "");
    return std::move(*bytes);
  }
  std::vector<std::byte> bytes(file.size());
  file.read(0, bytes);
  return bytes;
}

std::unique_ptr<ByteSource> open_bytes(const std::string& path, const ByteCounter& counter,
                                       const UnpackLimits& limits) {
  auto file = std::make_unique<File>(path, counter);
  if (!is_gzip(*file)) return file;
  if (auto copy = find_unpacked_copy(path, counter, limits)) return copy;
  if (auto bytes = read_unpacked(*file, limits, limits.held)) {
    return std::make_unique<HeldBytes>(path, std::move(*bytes));
  }
  auto copy = make_unpacked_copy(path, counter, limits);
  if (copy.bytes) return std::move(copy.bytes);
  auto bytes = read_unpacked(*file, limits, limits.held_without_copy);
  if (!bytes) refuse_to_hold(path, limits, copy.problem);
  return std::make_unique<HeldBytes>(path, std::move(*bytes));
}

}  // namespace lockstep::data
