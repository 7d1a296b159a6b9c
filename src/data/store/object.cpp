#include "data/store/object.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/digest.hpp"
#include "lockstep/error.hpp"

namespace lockstep::store {

std::uint64_t fingerprint_of(const std::string& version) {
  const std::string hex = sha256(version).substr(0, 16);
  std::uint64_t bits = 0;
  (void)std::from_chars(hex.data(), hex.data() + hex.size(), bits, 16);
  return bits;
}

Object::Object(const std::string& path, std::uint64_t size, std::uint64_t fingerprint, const Client& from,
               BlockCache& cache)
    : location_(parse_location(path)), client_(from), cache_(cache), size_(size), fingerprint_(fingerprint) {
  if (!cache_.keeps()) return;
  const std::string url = client_.access().bucket_url(location_.bucket) + "/" + location_.key;
  name_ = fmt::format("{}-{:016x}", sha256(url).substr(0, 24), fingerprint_);
}

void Object::fetch(std::uint64_t offset, std::span<std::byte> out) const {
  if (fingerprint_of(client_.read(location_, offset, out)) == fingerprint_) return;
  throw Error(ExitCode::data, fmt::format("{}: has been replaced since it was opened or indexed; start again to use "
                                          "what is there now",
                                          location_.text()));
}

void Object::read(std::uint64_t offset, std::span<std::byte> out) const {
  LOCKSTEP_CHECK(offset <= size() && out.size() <= size() - offset, location_.text());
  if (name_.empty() && !out.empty()) return fetch(offset, out);
  while (!out.empty()) {
    const std::uint64_t number = offset / kBlockBytes, begin = number * kBlockBytes;
    const std::uint64_t bytes = std::min(kBlockBytes, size() - begin);
    const auto here = out.first(std::min<std::uint64_t>(out.size(), begin + bytes - offset));
    cache_.read(name_, number, bytes, offset - begin, here, [&](std::span<std::byte> block) { fetch(begin, block); });
    offset += here.size();
    out = out.subspan(here.size());
  }
}

}  // namespace lockstep::store
