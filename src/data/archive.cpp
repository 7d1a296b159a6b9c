// FileTree's common part, and the archives that are unpacked into memory.
#include "data/archive.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "data/archive_input.hpp"
#include "data/bytes.hpp"
#include "data/path.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

bool is_hidden(const std::string& name) {
  return name.starts_with('.') || name.find("/.") != std::string::npos || name.starts_with("__MACOSX/");
}

/// "./train//cat/" and "/train/cat" are "train/cat".
std::string clean(std::string name) {
  name = std::filesystem::path(name).lexically_normal().generic_string();
  while (name.starts_with('/')) name.erase(0, 1);
  while (name.ends_with('/')) name.pop_back();
  return name == "." ? "" : name;
}

void support_formats(archive* handle) {
  support_compressions(handle);
  for (auto* const format : {archive_read_support_format_tar, archive_read_support_format_zip,
                             archive_read_support_format_7zip, archive_read_support_format_cpio}) {
    LOCKSTEP_CHECK(format(handle) == ARCHIVE_OK, "libarchive");
  }
}

class MemoryTree : public FileTree {
 public:
  MemoryTree(const std::string& path, const ByteCounter& counter) : FileTree(path), counter_(counter) {}
  /// Returns false if the files have more than `max_bytes`; what it holds is then unusable.
  [[nodiscard]] bool load(std::uint64_t max_bytes, const UnpackLimits& limits);
  /// Whether load() has found a tar.
  [[nodiscard]] bool is_tar() const { return is_tar_; }
  [[nodiscard]] std::span<const std::byte> read(const Entry& entry, std::uint64_t from, std::uint64_t length,
                                                std::vector<std::byte>& scratch) const override {
    (void)scratch;
    return std::span(contents_.at(entry.offset)).subspan(from, length);
  }

 private:
  [[noreturn]] void fail(archive* handle, const std::string& where) const;
  /// Returns false if that exceeds `max_bytes` in total.
  [[nodiscard]] bool add_contents(archive* handle, const std::string& name, std::uint64_t max_bytes,
                                  const UnpackBudget& budget);
  ByteCounter counter_;
  std::optional<ArchiveInput> input_;  ///< while it is loaded
  std::vector<std::vector<std::byte>> contents_;
  std::uint64_t held_ = 0;
  bool is_tar_ = false;
};

bool MemoryTree::load(std::uint64_t max_bytes, const UnpackLimits& limits) {
  input_.emplace(path(), counter_);
  const UnpackBudget budget(path(), input_->size(), limits);
  const ArchiveHandle handle(archive_read_new());
  LOCKSTEP_CHECK(handle != nullptr, "libarchive");
  support_formats(handle.get());
  if (!input_->open(handle.get())) fail(handle.get(), "");
  archive_entry* entry = nullptr;
  std::string name;
  for (;;) {
    const int result = archive_read_next_header(handle.get(), &entry);
    if (result == ARCHIVE_EOF) break;
    if (result != ARCHIVE_OK && result != ARCHIVE_WARN) fail(handle.get(), name.empty() ? "" : " after " + name);
    is_tar_ = (archive_format(handle.get()) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
    const char* raw = archive_entry_pathname(entry);
    name = raw != nullptr ? raw : "";
    if (archive_entry_filetype(entry) == AE_IFDIR) add_folder(name);
    const bool is_file = archive_entry_filetype(entry) == AE_IFREG;
    if (is_file && !add_contents(handle.get(), name, max_bytes, budget)) return false;
  }
  input_.reset();
  sort();
  return true;
}

void MemoryTree::fail(archive* handle, const std::string& where) const {
  input_->rethrow();
  const char* text = archive_error_string(handle);
  const std::string reason = text != nullptr ? text : "no reason given";
  if (where.empty()) {
    throw Error(
        ExitCode::data,
        fmt::format("{}: neither a folder nor an archive such as .tar, .tar.gz or .tar.zst ({})", path(), reason));
  }
  throw Error(ExitCode::data, fmt::format("{}: damaged archive{}: {}", path(), where, reason));
}

bool MemoryTree::add_contents(archive* handle, const std::string& name, std::uint64_t max_bytes,
                              const UnpackBudget& budget) {
  std::vector<std::byte> contents;
  for (;;) {
    std::array<std::byte, 1 << 16> block;  // NOLINT: filled by libarchive
    const auto got = archive_read_data(handle, block.data(), block.size());
    if (got < 0) fail(handle, " in " + name);
    if (got == 0) break;
    const auto length = static_cast<std::size_t>(got);
    held_ += length;
    budget.check(held_);
    if (held_ > max_bytes) return false;
    contents.insert(contents.end(), block.begin(), block.begin() + got);
  }
  contents.shrink_to_fit();
  add_file(name, contents_.size(), contents.size());
  contents_.push_back(std::move(contents));
  return true;
}

/// Null if it unpacks to more than `max_bytes`.
std::unique_ptr<MemoryTree> load(const std::string& path, const ByteCounter& counter, std::uint64_t max_bytes,
                                 const UnpackLimits& limits, bool& is_tar) {
  auto tree = std::make_unique<MemoryTree>(path, counter);
  const bool fits = tree->load(max_bytes, limits);
  is_tar = tree->is_tar();
  return fits ? std::move(tree) : nullptr;
}

class MemberBytes final : public ByteSource {
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

void FileTree::add_file(std::string name, std::uint64_t offset, std::uint64_t size) {
  name = clean(std::move(name));
  if (!name.empty() && !is_hidden(name)) files_.push_back({std::move(name), offset, size});
}

void FileTree::add_folder(std::string name) {
  name = clean(std::move(name));
  if (!name.empty() && !is_hidden(name)) folders_.push_back(std::move(name));
}

std::string FileTree::look_up(Entry& /*entry*/, IndexNotes* /*notes*/) const {
  LOCKSTEP_CHECK(false, "a folder of loose files");
}

void FileTree::sort() {
  std::sort(files_.begin(), files_.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  std::sort(folders_.begin(), folders_.end());
}

std::unique_ptr<FileTree> unpack_archive(const std::string& path, const ByteCounter& counter,
                                         const UnpackLimits& limits) {
  UnpackedCopy copy{find_unpacked_copy(path, limits).value_or(""), ""};
  if (copy.path.empty()) {
    bool is_tar = false;
    if (auto tree = load(path, counter, limits.held, limits, is_tar)) return tree;
    if (is_tar) copy = make_unpacked_copy(path, limits);
    if (copy.path.empty()) {
      if (auto tree = load(path, counter, limits.held_without_copy, limits, is_tar)) return tree;
      refuse_to_hold(path, limits, copy.problem);
    }
  }
  auto tar = open_plain_tar(std::make_unique<File>(copy.path, counter), path);
  tar->list();
  return tar;
}

std::string FileTree::write_listing() const {
  std::string out;
  append(out, static_cast<std::uint64_t>(files_.size()));
  for (const auto& file : files_) {
    append_text(out, file.name);
    append(out, file.offset);
    append(out, file.size);
  }
  append(out, static_cast<std::uint64_t>(folders_.size()));
  for (const auto& folder : folders_) append_text(out, folder);
  return out;
}

void FileTree::read_listing(const std::string& listing) {
  ByteReader reader(listing, "a noted list of files ends too early");
  files_.resize(reader.value<std::uint64_t>());
  for (auto& file : files_) {
    file.name = reader.text();
    file.offset = reader.value<std::uint64_t>();
    file.size = reader.value<std::uint64_t>();
  }
  folders_.resize(reader.value<std::uint64_t>());
  for (auto& folder : folders_) folder = reader.text();
}

std::unique_ptr<FileTree> open_tree(const std::string& path, const ByteCounter& counter, IndexNotes* notes,
                                    const UnpackLimits& limits) {
  const bool folder = kind_of(path) == PathKind::folder;
  if (notes != nullptr && folder) notes->made_from_folder(path);
  if (notes != nullptr && !folder) notes->made_from_file(path);
  auto file = folder ? nullptr : std::make_unique<File>(path, counter);
  if (file && !is_plain_tar(*file)) return unpack_archive(path, counter, limits);
  auto tree = folder ? open_folder(path, counter) : open_plain_tar(std::move(file), path);
  tree->read_listing(noted(notes, "files of " + whole_path(path), [&] {
    tree->list();
    return tree->write_listing();
  }));
  return tree;
}

std::unique_ptr<ByteSource> open_member(std::shared_ptr<const FileTree> tree, FileTree::Entry entry) {
  return std::make_unique<MemberBytes>(std::move(tree), std::move(entry));
}

}  // namespace lockstep::data
