#include "data/archive_input.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "core/words.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

/// libarchive's callbacks.
struct ArchiveCalls {
  static la_ssize_t read(::archive* /*handle*/, void* user, const void** out) {
    auto& input = *static_cast<ArchiveInput*>(user);
    try {
      input.gunzip_ ? input.unpack_block() : input.read_block();
    } catch (...) {
      input.failure_ = std::current_exception();
      return ARCHIVE_FATAL;
    }
    *out = input.block_.data();
    return input.block_.size();
  }

  static la_int64_t skip(::archive* /*handle*/, void* user, la_int64_t bytes) {
    auto& input = *static_cast<ArchiveInput*>(user);
    const auto skipped = std::min(static_cast<std::uint64_t>(bytes), input.size() - input.at_);
    input.at_ += skipped;
    return skipped;
  }

  static la_int64_t seek(::archive* /*handle*/, void* user, la_int64_t offset, int whence) {
    auto& input = *static_cast<ArchiveInput*>(user);
    const la_int64_t size = input.size();
    const auto from = whence == SEEK_SET ? 0 : whence == SEEK_END ? size : static_cast<la_int64_t>(input.at_);
    input.at_ = std::clamp<la_int64_t>(from + offset, 0, size);
    return input.at_;
  }
};

void ArchiveInput::read_block() {
  block_.resize(std::min<std::uint64_t>(block_bytes_, size() - at_));
  file_.read(at_, block_);
  at_ += block_.size();
}

void ArchiveInput::unpack_block() {
  block_.resize(block_bytes_);
  std::size_t filled = 0;
  while (filled < block_.size()) {
    if (rest_.empty()) {
      packed_.resize(std::min<std::uint64_t>(block_bytes_, size() - at_));
      file_.read(at_, packed_);
      at_ += packed_.size();
      rest_ = packed_;
      if (rest_.empty()) break;
    }
    filled += gunzip_->unpack(rest_, std::span(block_).subspan(filled));
  }
  if (filled < block_.size()) gunzip_->finish();
  block_.resize(filled);
}

void ArchiveInput::finish() {
  while (gunzip_ && !block_.empty()) unpack_block();
}

bool ArchiveInput::open(::archive* handle) {
  archive_read_set_read_callback(handle, ArchiveCalls::read);
  if (is_gzip(file_)) {
    gunzip_ = std::make_unique<Gunzip>(file_.name());
  } else {
    archive_read_set_skip_callback(handle, ArchiveCalls::skip);
    archive_read_set_seek_callback(handle, ArchiveCalls::seek);
  }
  archive_read_set_callback_data(handle, this);
  return archive_read_open1(handle) == ARCHIVE_OK;
}

void ArchiveInput::rethrow() const {
  if (failure_) std::rethrow_exception(failure_);
}

Utf8Names::Utf8Names() : utf8_(::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
  LOCKSTEP_CHECK(utf8_ != nullptr, "the locale C.UTF-8");
  before_ = ::uselocale(utf8_);
}

Utf8Names::~Utf8Names() {
  ::uselocale(before_);
  ::freelocale(utf8_);
}

ArchiveMembers::ArchiveMembers(std::string path, ArchiveInput& input, ::archive* handle)
    : path_(std::move(path)), input_(input), handle_(handle) {
  if (!input_.open(handle_)) fail("");
}

bool ArchiveMembers::next() {
  const int result = archive_read_next_header(handle_, &entry_);
  if (result == ARCHIVE_EOF) return false;
  const std::string where = name_.empty() ? "" : " after " + name_;
  if (result != ARCHIVE_OK && result != ARCHIVE_WARN) fail(where);
  const char* name = archive_entry_pathname(entry_);
  if (name == nullptr) name = archive_entry_pathname_utf8(entry_);
  if (name == nullptr)
    throw Error(ExitCode::data, fmt::format("{}: damaged archive{}: a name that is not UTF-8", path_, where));
  name_ = name;
  return true;
}

std::uint64_t ArchiveMembers::size() const {
  const bool known = archive_entry_size_is_set(entry_) != 0 && archive_entry_size(entry_) > 0;
  return known ? static_cast<std::uint64_t>(archive_entry_size(entry_)) : 0;
}

namespace {

/// ".csv" of "A.CSV.gz"; "": it is not called a table.
std::string table_ending(std::string path) {
  path = lower_case(std::move(path));
  if (path.ends_with(".gz")) path.resize(path.size() - 3);
  for (const char* const ending : {".csv", ".tsv", ".jsonl", ".parquet"}) {
    if (path.ends_with(ending)) return ending;
  }
  return "";
}

}  // namespace

void ArchiveMembers::fail(const std::string& where) const {
  input_.rethrow();
  const char* text = archive_error_string(handle_);
  const std::string reason = text != nullptr ? text : "no reason given";
  if (const std::string table = table_ending(path_); where.empty() && !table.empty()) {
    throw Error(ExitCode::data,
                fmt::format("{}: expected a folder or an archive, found a {} file; `table:` reads one of "
                            "numbers and categories, `csv:` one that names image files, `texts:` one of "
                            "texts",
                            path_, table));
  }
  if (where.empty()) {
    throw Error(
        ExitCode::data,
        fmt::format("{}: neither a folder nor an archive such as .tar, .tar.gz or .tar.zst ({})", path_, reason));
  }
  throw Error(ExitCode::data, fmt::format("{}: damaged archive{}: {}", path_, where, reason));
}

}  // namespace lockstep::data
