// What libarchive reads: a file of this host or an object, at the offsets that it asks for.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "data/readers/file.hpp"

struct archive;  // from libarchive

namespace lockstep::data {

class ArchiveInput {
 public:
  /// Throws as File's constructor does.
  ArchiveInput(const std::string& path, ByteCounter counter) : file_(path, std::move(counter)) {}

  [[nodiscard]] std::uint64_t size() const { return file_.size(); }
  /// Whether `handle`, whose formats and filters are set, can read it. This object must outlive the handle's use.
  [[nodiscard]] bool open(::archive* handle);
  /// Throws what a read has thrown: libarchive itself passes on that it failed, not why.
  void rethrow() const;

 private:
  friend struct ArchiveCalls;
  File file_;
  std::uint64_t at_ = 0;
  std::vector<std::byte> block_;
  std::exception_ptr failure_;
};

}  // namespace lockstep::data
