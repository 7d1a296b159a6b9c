#include "data/gunzip.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/error.hpp"

namespace lockstep::data {

Gunzip::Gunzip(std::string path) : path_(std::move(path)) {
  LOCKSTEP_CHECK(inflateInit2(&stream_, 15 + 16) == Z_OK, "zlib");
}

Gunzip::~Gunzip() {
  inflateEnd(&stream_);
}

std::size_t Gunzip::unpack(std::span<const std::byte>& packed, std::span<std::byte> out) {
  constexpr auto kStep = std::size_t{1} << 30;  // zlib's counters have 32 bits
  std::size_t filled = 0;
  while (filled < out.size() && !packed.empty()) {
    if (!in_member_) {
      const bool pads = began_ && packed.front() == std::byte{0};  // tapes and some programs fill blocks
      if (!pads && (padded_ || (began_ && packed.front() != std::byte{0x1F}))) {
        throw Error(ExitCode::data,
                    fmt::format("{}: damaged gzip file (bytes behind its end that are no gzip)", path_));
      }
      padded_ = pads;
      if (pads) packed = packed.subspan(1);
      if (pads) continue;
      LOCKSTEP_CHECK(inflateReset(&stream_) == Z_OK, "zlib");
      began_ = in_member_ = true;
    }
    const auto in = packed.first(std::min(kStep, packed.size()));
    const auto to = out.subspan(filled, std::min(kStep, out.size() - filled));
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
    stream_.avail_in = in.size();
    stream_.next_out = reinterpret_cast<Bytef*>(to.data());
    stream_.avail_out = to.size();
    const int result = inflate(&stream_, Z_NO_FLUSH);
    packed = packed.subspan(in.size() - stream_.avail_in);
    filled += to.size() - stream_.avail_out;
    if (result == Z_STREAM_END) {
      in_member_ = false;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      throw Error(ExitCode::data, fmt::format("{}: damaged gzip file ({})", path_,
                                              stream_.msg != nullptr ? stream_.msg : "no reason given"));
    }
  }
  return filled;
}

void Gunzip::finish() const {
  if (in_member_ || !began_) throw Error(ExitCode::data, fmt::format("{}: truncated gzip file", path_));
}

}  // namespace lockstep::data
