// FileTree's common part, and the archives that are unpacked into memory.
#include "data/archive.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/words.hpp"
#include "data/archive_input.hpp"
#include "data/bytes.hpp"
#include "data/path.hpp"
#include "data/readers/utf8.hpp"
#include "data/tokenizer/unicode_text.hpp"
#include "data/unpacked_copy.hpp"
#include "data/unpacked_names.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

bool is_hidden(const std::string& name) {
  return name.empty() || name.starts_with('.') || name.find("/.") != std::string::npos || name == "__MACOSX" ||
         name.starts_with("__MACOSX/");
}

/// Of pictures; not of what macOS writes beside each ("._1.jpg").
bool is_hidden_image(const std::string& name) {
  const std::filesystem::path path(name);
  const std::string ending = lower_case(path.extension().string());
  const bool image = ending == ".jpg" || ending == ".jpeg" || ending == ".png";
  return image && !path.filename().string().starts_with("._") && !name.starts_with("__MACOSX/");
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
  bool is_tar() const { return is_tar_; }
  std::span<const std::byte> read(const Entry& entry, std::uint64_t from, std::uint64_t length,
                                  std::vector<std::byte>& scratch) const override {
    (void)scratch;
    return std::span(contents_.at(entry.offset)).subspan(from, length);
  }

 private:
  /// The contents of the entry; adds up in held_, and stops beyond `max_bytes`.
  [[nodiscard]] UnpackedNames::Content take_contents(ArchiveMembers& members, std::uint64_t max_bytes,
                                                     const UnpackBudget& budget);
  ByteCounter counter_;
  std::vector<std::vector<std::byte>> contents_;
  std::uint64_t held_ = 0;
  bool is_tar_ = false;
};

bool MemoryTree::load(std::uint64_t max_bytes, const UnpackLimits& limits) {
  ArchiveInput input(path(), counter_);
  const UnpackBudget budget(path(), input.size(), limits);
  const ArchiveHandle handle(archive_read_new());
  LOCKSTEP_CHECK(handle != nullptr, "libarchive");
  support_formats(handle.get());
  ArchiveMembers members(path(), input, handle.get());
  UnpackedNames names(path());
  while (members.next()) {
    is_tar_ = (archive_format(handle.get()) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
    names.add(members.entry(), members.name(), [&] { return take_contents(members, max_bytes, budget); });
    if (held_ > max_bytes) return false;
  }
  input.finish();
  names.hand_over(*this);
  sort();
  return true;
}

UnpackedNames::Content MemoryTree::take_contents(ArchiveMembers& members, std::uint64_t max_bytes,
                                                 const UnpackBudget& budget) {
  std::vector<std::byte> contents;
  const auto hold = [&](std::size_t bytes) {
    held_ += bytes;
    budget.check(held_);
  };
  for (;;) {
    std::array<std::byte, 1 << 16> block;  // NOLINT: filled by libarchive
    const auto got = archive_read_data(members.handle(), block.data(), block.size());
    if (got < 0) members.fail(" in " + members.name());
    if (got == 0) break;
    hold(static_cast<std::size_t>(got));
    if (held_ > max_bytes) return {};
    contents.insert(contents.end(), block.begin(), block.begin() + got);
  }
  const std::uint64_t size = members.size();
  if (contents.size() < size) {  // a sparse file that ends with a hole
    hold(size - contents.size());
    if (held_ > max_bytes) return {};
    contents.resize(size);
  }
  contents.shrink_to_fit();
  contents_.push_back(std::move(contents));
  return {contents_.size() - 1, contents_.back().size()};
}

/// Null if it unpacks to more than `max_bytes`.
std::unique_ptr<MemoryTree> load(const std::string& path, const ByteCounter& counter, std::uint64_t max_bytes,
                                 const UnpackLimits& limits, bool& is_tar) {
  auto tree = std::make_unique<MemoryTree>(path, counter);
  const bool fits = tree->load(max_bytes, limits);
  is_tar = tree->is_tar();
  return fits ? std::move(tree) : nullptr;
}

std::unique_ptr<FileTree> listed(std::unique_ptr<FileTree> tree, IndexNotes* notes) {
  tree->read_listing(noted(notes, "files of " + whole_path(tree->path()), [&] {
    tree->list();
    return tree->write_listing();
  }));
  return tree;
}

class MemberBytes final : public ByteSource {
 public:
  MemberBytes(std::shared_ptr<const FileTree> tree, FileTree::Entry entry)
      : ByteSource(tree->path() + ": " + entry.name), tree_(std::move(tree)), entry_(std::move(entry)) {}
  std::uint64_t size() const override { return entry_.size; }
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

std::string clean_name(const std::string& name) {
  std::string clean = std::filesystem::path(name).lexically_normal().generic_string();
  while (clean.starts_with('/')) clean.erase(0, 1);
  while (clean.ends_with('/')) clean.pop_back();
  if (clean == ".." || clean.starts_with("../")) {
    throw Error(ExitCode::data, fmt::format("{}: expected a name within its archive, found one that leads out", name));
  }
  const bool has_letters_to_compose =
      std::any_of(clean.begin(), clean.end(), [](char c) { return static_cast<signed char>(c) < 0; }) &&
      first_not_utf8(clean) == clean.size();
  if (has_letters_to_compose) normalize(NormalForm::nfc, clean);
  return clean == "." ? "" : clean;
}

void FileTree::add_file(std::string name, std::uint64_t offset, std::uint64_t size) {
  name = clean_name(name);
  if (!is_hidden(name)) {
    files_.push_back({std::move(name), offset, size});
  } else if (is_hidden_image(name)) {
    hidden_images_.push_back(std::move(name));
  }
}

void FileTree::add_folder(std::string name) {
  name = clean_name(name);
  if (!is_hidden(name)) folders_.push_back(std::move(name));
}

void FileTree::add_fault(std::string name, std::string text) {
  name = clean_name(name);
  if (!is_hidden(name)) faults_.push_back({std::move(name), std::move(text)});
}

std::string FileTree::look_up(Entry& /*entry*/, IndexNotes* /*notes*/) const {
  LOCKSTEP_CHECK(false, "a folder of loose files");
}

void FileTree::sort() {
  std::sort(files_.begin(), files_.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  std::sort(folders_.begin(), folders_.end());
  std::sort(faults_.begin(), faults_.end(), [](const Fault& a, const Fault& b) { return a.name < b.name; });
  if (hidden_images_.empty()) return;
  std::sort(hidden_images_.begin(), hidden_images_.end());
  add_warning(
      fmt::format("{}: {} not read, since a name that begins with a dot is hidden: {}", path_,
                  hidden_images_.size() == 1 ? "1 image is" : fmt::format("{} images are", hidden_images_.size()),
                  few_of(hidden_images_)));
}

void FileTree::require_different_names() const {
  const auto same = [](const Entry& a, const Entry& b) { return a.name == b.name; };
  const auto twice = std::adjacent_find(files_.begin(), files_.end(), same);
  if (twice == files_.end()) return;
  throw Error(ExitCode::data, fmt::format("{}: expected files of different names, found two called {}, one with "
                                          "composed letters and one with decomposed ones; rename one",
                                          path_, twice->name));
}

std::unique_ptr<FileTree> unpack_archive(const std::string& path, const ByteCounter& counter, IndexNotes* notes,
                                         const UnpackLimits& limits) {
  UnpackedCopy copy{find_unpacked_copy(path, counter, limits), ""};
  if (!copy.bytes) {
    bool is_tar = false;
    if (auto tree = load(path, counter, limits.held, limits, is_tar)) return tree;
    if (is_tar) copy = make_unpacked_copy(path, counter, limits);
    if (!copy.bytes) {
      if (auto tree = load(path, counter, limits.held_without_copy, limits, is_tar)) return tree;
      refuse_to_hold(path, limits, copy.problem);
    }
  }
  return listed(open_plain_tar(std::move(copy.bytes), path), notes);
}

std::string FileTree::write_listing() const {
  std::string out;
  const auto count = [&out](const auto& list) { append(out, static_cast<std::uint64_t>(list.size())); };
  count(files_);
  for (const auto& file : files_) {
    append_text(out, file.name);
    append(out, file.offset);
    append(out, file.size);
  }
  count(folders_);
  for (const auto& folder : folders_) append_text(out, folder);
  count(faults_);
  for (const auto& fault : faults_) {
    append_text(out, fault.name);
    append_text(out, fault.text);
  }
  count(warnings_);
  for (const auto& warning : warnings_) append_text(out, warning);
  count(sparse_);
  for (const auto& [offset, extents] : sparse_) {
    append(out, offset);
    count(extents);
    for (const auto& [begin, length, at] : extents) {
      for (const std::uint64_t number : {begin, length, at}) append(out, number);
    }
  }
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
  faults_.resize(reader.value<std::uint64_t>());
  for (auto& fault : faults_) {
    fault.name = reader.text();
    fault.text = reader.text();
  }
  warnings_.resize(reader.value<std::uint64_t>());
  for (auto& warning : warnings_) warning = reader.text();
  sparse_.clear();
  for (auto left = reader.value<std::uint64_t>(); left > 0; --left) {
    auto& extents = sparse_[reader.value<std::uint64_t>()];
    extents.resize(reader.value<std::uint64_t>());
    for (auto& [begin, length, at] : extents) {
      for (std::uint64_t* number : {&begin, &length, &at}) *number = reader.value<std::uint64_t>();
    }
  }
}

std::unique_ptr<FileTree> open_tree(const std::string& path, const ByteCounter& counter, IndexNotes* notes,
                                    const UnpackLimits& limits) {
  const bool folder = kind_of(path) == PathKind::folder;
  if (notes != nullptr && folder) notes->made_from_folder(path);
  if (notes != nullptr && !folder) notes->made_from_file(path);
  auto file = folder ? nullptr : std::make_unique<File>(path, counter);
  if (file && !is_plain_tar(*file)) return unpack_archive(path, counter, notes, limits);
  return listed(folder ? open_folder(path, counter) : open_plain_tar(std::move(file), path), notes);
}

std::unique_ptr<ByteSource> open_member(std::shared_ptr<const FileTree> tree, FileTree::Entry entry) {
  return std::make_unique<MemberBytes>(std::move(tree), std::move(entry));
}

}  // namespace lockstep::data
