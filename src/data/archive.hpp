// The files in a folder or an archive, by name; for all kinds, callers see the same names and bytes.
//
// Folder: each file is opened when it is read; of an object store, each object is fetched. Plain tar: its headers are
// walked once, then files are read at their offsets on demand. Compressed tar, zip, 7z and cpio: unpacked once into
// memory (a JPEG stays a JPEG). A large compressed tar: decompressed once per host into the cache directory
// (unpack.hpp), then read like a plain tar. Links are followed; nothing is left out in silence but hidden files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/index_notes.hpp"
#include "data/readers/file.hpp"
#include "data/unpack.hpp"

namespace lockstep::data {

class FileTree {
 public:
  struct Entry {
    std::string name;          ///< relative to the root: "train/cat/7.jpg"
    std::uint64_t offset = 0;  ///< defined by the tree: offset in the tar, or number in memory
    std::uint64_t size = 0;
  };

  /// A name without a file that can be read: a link that leads nowhere, a device.
  struct Fault {
    std::string name, text;
  };
  /// A run of a file's bytes that lies at `at`; between such runs the file has zeros.
  struct Extent {
    std::uint64_t begin = 0, length = 0, at = 0;
  };

  explicit FileTree(std::string path) : path_(std::move(path)) {}
  virtual ~FileTree() = default;
  const std::string& path() const { return path_; }
  /// Sorted by name, byte by byte. Excludes hidden files (a component of the name begins with a dot, or is __MACOSX).
  const std::vector<Entry>& files() const { return files_; }
  const std::vector<std::string>& folders() const { return folders_; }
  const std::vector<Fault>& faults() const { return faults_; }
  /// About what is allowed but rarely intended; to be shown before files() are used.
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// Finds the files' names. Called by open_tree(), unless the names are in the notes.
  virtual void list() {}
  /// Of a folder whose files are not listed: fills in where a file lies and its size, by its name; returns why that is
  /// not known, or "".
  virtual std::string look_up(Entry& entry, IndexNotes* notes) const;
  std::string write_listing() const;
  void read_listing(const std::string& listing);
  /// Bytes `from` ... from + length - 1 of a file, in the tree's memory or in `scratch`. Thread-safe.
  virtual std::span<const std::byte> read(const Entry& entry, std::uint64_t from, std::uint64_t length,
                                          std::vector<std::byte>& scratch) const = 0;

  // For list().
  void add_file(std::string name, std::uint64_t offset, std::uint64_t size);
  void add_folder(std::string name);
  void add_fault(std::string name, std::string text);
  void add_warning(std::string text) { warnings_.push_back(std::move(text)); }

 protected:
  void sort();
  /// Throws Error(data) for two files of one name, as where only one has composed letters.
  void require_different_names() const;
  std::map<std::uint64_t, std::vector<Extent>> sparse_;  ///< of files that are not stored as they are, by offset

 private:
  std::string path_;
  std::vector<Entry> files_;
  std::vector<std::string> folders_;
  std::vector<Fault> faults_;
  std::vector<std::string> warnings_;
  std::vector<std::string> hidden_images_;
};

/// "./train//cat/" and "/train/cat" are "train/cat". Letters are composed (NFC), as libarchive does with some archives'
/// names and not with others; macOS writes them decomposed. Throws Error(data) for a name that leads out of its
/// archive.
[[nodiscard]] std::string clean_name(const std::string& name);

/// Throws Error(data) for a path that is neither a folder nor an archive, for a damaged archive, and for one beyond the
/// limits. With notes of an earlier index (may be null), neither folders are listed nor plain tars walked.
[[nodiscard]] std::unique_ptr<FileTree> open_tree(const std::string& path, const ByteCounter& counter,
                                                  IndexNotes* notes = nullptr, const UnpackLimits& limits = {});

/// Opens one of its files.
[[nodiscard]] std::unique_ptr<ByteSource> open_member(std::shared_ptr<const FileTree> tree, FileTree::Entry entry);

/// A folder whose files are not listed: the caller knows their names, and asks look_up().
[[nodiscard]] std::unique_ptr<FileTree> open_loose_files(const std::string& folder, const ByteCounter& counter);

/// The kinds, for open_tree; all but the last are not listed yet.
[[nodiscard]] std::unique_ptr<FileTree> open_folder(const std::string& path, const ByteCounter& counter);
[[nodiscard]] std::unique_ptr<FileTree> open_object_folder(const std::string& path, const ByteCounter& counter);
[[nodiscard]] bool is_plain_tar(const File& file);
/// `path`: the name to use in messages.
[[nodiscard]] std::unique_ptr<FileTree> open_plain_tar(std::unique_ptr<ByteSource> file, const std::string& path);
[[nodiscard]] std::unique_ptr<FileTree> unpack_archive(const std::string& path, const ByteCounter& counter,
                                                       IndexNotes* notes, const UnpackLimits& limits);

}  // namespace lockstep::data
