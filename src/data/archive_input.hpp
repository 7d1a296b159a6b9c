// What libarchive reads, a file of this host or an object, at the offsets that it asks for; and the members that it
// finds. gzip is unpacked here: libarchive does not compare its sums.
#pragma once

#include <clocale>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/gunzip.hpp"
#include "data/readers/file.hpp"

struct archive;  // from libarchive
struct archive_entry;

namespace lockstep::data {

class ArchiveInput {
 public:
  /// Throws as File's constructor does.
  ArchiveInput(const std::string& path, ByteCounter counter)
      : own_(std::make_unique<File>(path, std::move(counter))), file_(*own_) {}
  /// Reads `file`, which must outlive this, `block` bytes at a time.
  ArchiveInput(const ByteSource& file, std::size_t block) : file_(file), block_bytes_(block) {}

  std::uint64_t size() const { return file_.size(); }
  /// Whether `handle`, whose formats and filters are set, can read it. This object must outlive the handle's use.
  [[nodiscard]] bool open(::archive* handle);
  /// Reads what libarchive left of a gzip file, which has its sum at the end.
  void finish();
  /// Throws what a read has thrown: libarchive itself passes on that it failed, not why.
  void rethrow() const;

 private:
  friend struct ArchiveCalls;
  void read_block();
  void unpack_block();
  std::unique_ptr<File> own_;
  const ByteSource& file_;
  std::size_t block_bytes_ = std::size_t{1} << 18;
  std::uint64_t at_ = 0;
  std::vector<std::byte> block_;    ///< as libarchive gets it
  std::unique_ptr<Gunzip> gunzip_;  ///< null: the file is no gzip
  std::vector<std::byte> packed_;
  std::span<const std::byte> rest_;  ///< of packed_
  std::exception_ptr failure_;
};

/// While it lives, this thread's names are UTF-8: libarchive converts what an archive has in other forms to the locale.
class Utf8Names {
 public:
  Utf8Names();
  ~Utf8Names();
  Utf8Names(const Utf8Names&) = delete;
  Utf8Names& operator=(const Utf8Names&) = delete;

 private:
  locale_t utf8_, before_;
};

/// Goes through the members of an archive. Throws Error(data) for a damaged one.
class ArchiveMembers {
 public:
  /// `path`: for messages. `handle`: its formats and filters are set.
  ArchiveMembers(std::string path, ArchiveInput& input, ::archive* handle);
  /// Whether there is another one.
  [[nodiscard]] bool next();
  ::archive* handle() const { return handle_; }
  archive_entry* entry() const { return entry_; }
  const std::string& name() const { return name_; }
  /// As its header says; 0: it does not.
  std::uint64_t size() const;
  /// `where`: " in NAME", " after NAME", or "" if it is not even known to be an archive.
  [[noreturn]] void fail(const std::string& where) const;

 private:
  Utf8Names utf8_;
  std::string path_;
  ArchiveInput& input_;
  ::archive* handle_;
  archive_entry* entry_ = nullptr;
  std::string name_;
};

}  // namespace lockstep::data
