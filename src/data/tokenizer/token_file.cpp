#include "data/tokenizer/token_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <span>
#include <system_error>
#include <utility>

#include "core/errno_code.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

static_assert(std::endian::native == std::endian::little);

TokenFile::TokenFile(std::string path, std::int64_t width, std::int64_t tokens)
    : path_(std::move(path)), width_(width), tokens_(tokens) {
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file_ >= 0 && ftruncate(file_, tokens * width) == 0 && lseek(file_, 0, SEEK_END) >= 0) return;
  const int error = errno;
  if (file_ >= 0) close(file_);
  throw Error(code_of_errno(error, ExitCode::cannot_create),
              fmt::format("{}: cannot create: {}", path_, std::generic_category().message(error)));
}

TokenFile::~TokenFile() {
  if (file_ >= 0) close(file_);
}

void TokenFile::fail(const char* what) const {
  throw Error(ExitCode::infrastructure,
              fmt::format("{}: cannot {}: {}", path_, what, std::generic_category().message(errno)));
}

void TokenFile::append(const std::vector<std::int32_t>& tokens) {
  std::vector<std::uint16_t> narrow;
  if (width_ == 2) narrow.assign(tokens.begin(), tokens.end());
  auto bytes = width_ == 2 ? std::as_bytes(std::span(narrow)) : std::as_bytes(std::span(tokens));
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write");
    bytes = bytes.subspan(written);
  }
  tokens_ += std::ssize(tokens);
}

void TokenFile::flush() {
  if (fdatasync(file_) != 0) fail("write");
}

void TokenFile::rename_to(const std::string& path) {
  flush();
  if (std::rename(path_.c_str(), path.c_str()) != 0) fail("rename");
}

}  // namespace lockstep::data
