#include "data/readers/byte_source.hpp"

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

class FileBytes : public ByteSource {
 public:
  FileBytes(std::unique_ptr<File> file, const std::string& name) : ByteSource(name), file_(std::move(file)) {}
  [[nodiscard]] std::uint64_t size() const override { return file_->size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override { file_->read(offset, out); }

 private:
  std::unique_ptr<File> file_;
};

class HeldBytes : public ByteSource {
 public:
  HeldBytes(std::string name, std::vector<std::byte> bytes) : ByteSource(std::move(name)), bytes_(std::move(bytes)) {}
  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    LOCKSTEP_CHECK(offset <= bytes_.size() && out.size() <= bytes_.size() - offset, name());
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }

 private:
  std::vector<std::byte> bytes_;
};

class MemberBytes : public ByteSource {
 public:
  MemberBytes(std::shared_ptr<const FileTree> tree, FileTree::Entry entry)
      : ByteSource(tree->path() + ": " + entry.name), tree_(std::move(tree)), entry_(std::move(entry)) {}
  [[nodiscard]] std::uint64_t size() const override { return entry_.size; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::vector<std::byte> scratch;
    const auto bytes = tree_->read(entry_, offset, out.size(), scratch);
    std::copy(bytes.begin(), bytes.end(), out.begin());
  }

 private:
  std::shared_ptr<const FileTree> tree_;
  FileTree::Entry entry_;
};

}  // namespace

std::unique_ptr<ByteSource> open_bytes(const std::string& path, const ByteCounter& counter,
                                       const UnpackLimits& limits) {
  auto file = std::make_unique<File>(path, counter);
  if (!is_gzip(*file)) return std::make_unique<FileBytes>(std::move(file), path);
  UnpackedCopy copy{find_unpacked_copy(path, limits).value_or(""), ""};
  if (copy.path.empty()) {
    if (auto bytes = read_unpacked(*file, limits, limits.held))
      return std::make_unique<HeldBytes>(path, std::move(*bytes));
    copy = make_unpacked_copy(path, limits);
  }
  if (!copy.path.empty()) return std::make_unique<FileBytes>(std::make_unique<File>(copy.path, counter), path);
  auto bytes = read_unpacked(*file, limits, limits.held_without_copy);
  if (!bytes) refuse_to_hold(path, limits, copy.problem);
  return std::make_unique<HeldBytes>(path, std::move(*bytes));
}

std::unique_ptr<ByteSource> open_member(std::shared_ptr<const FileTree> tree, FileTree::Entry entry) {
  return std::make_unique<MemberBytes>(std::move(tree), std::move(entry));
}

}  // namespace lockstep::data
