#include "data/archive_input.hpp"

#include <archive.h>

#include <algorithm>
#include <cstdio>
#include <exception>

namespace lockstep::data {

namespace {
constexpr std::size_t kBlock = 1 << 18;
}  // namespace

/// libarchive's callbacks.
struct ArchiveCalls {
  static la_ssize_t read(::archive* /*handle*/, void* user, const void** out) {
    auto& input = *static_cast<ArchiveInput*>(user);
    try {
      input.block_.resize(std::min<std::uint64_t>(kBlock, input.size() - input.at_));
      input.file_.read(input.at_, input.block_);
    } catch (...) {
      input.failure_ = std::current_exception();
      return ARCHIVE_FATAL;
    }
    input.at_ += input.block_.size();
    *out = input.block_.data();
    return static_cast<la_ssize_t>(input.block_.size());
  }

  static la_int64_t skip(::archive* /*handle*/, void* user, la_int64_t bytes) {
    auto& input = *static_cast<ArchiveInput*>(user);
    const auto skipped = std::min(static_cast<std::uint64_t>(bytes), input.size() - input.at_);
    input.at_ += skipped;
    return static_cast<la_int64_t>(skipped);
  }

  static la_int64_t seek(::archive* /*handle*/, void* user, la_int64_t offset, int whence) {
    auto& input = *static_cast<ArchiveInput*>(user);
    const auto size = static_cast<la_int64_t>(input.size());
    const auto from = whence == SEEK_SET ? 0 : whence == SEEK_END ? size : static_cast<la_int64_t>(input.at_);
    input.at_ = static_cast<std::uint64_t>(std::clamp<la_int64_t>(from + offset, 0, size));
    return static_cast<la_int64_t>(input.at_);
  }
};

bool ArchiveInput::open(::archive* handle) {
  archive_read_set_read_callback(handle, ArchiveCalls::read);
  archive_read_set_skip_callback(handle, ArchiveCalls::skip);
  archive_read_set_seek_callback(handle, ArchiveCalls::seek);
  archive_read_set_callback_data(handle, this);
  return archive_read_open1(handle) == ARCHIVE_OK;
}

void ArchiveInput::rethrow() const {
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace lockstep::data
