#include "store/object.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/digest.hpp"
#include "lockstep/error.hpp"

namespace lockstep::store {

namespace {

ObjectInfo existing(const Location& location, const Client& from) {
  auto found = from.find(location);
  if (!found) throw Error(ExitCode::data, fmt::format("{}: there is no such object", location.text()));
  return std::move(*found);
}

}  // namespace

std::uint64_t fingerprint_of(const std::string& version) {
  const std::string hex = sha256(version).substr(0, 16);
  std::uint64_t bits = 0;
  (void)std::from_chars(hex.data(), hex.data() + hex.size(), bits, 16);
  return bits;
}

Object::Object(const std::string& path, const Client& from, BlockCache& cache)
    : location_(parse_location(path)), client_(from), cache_(cache) {
  const ObjectInfo found = existing(location_, from);
  size_ = found.size;
  fingerprint_ = fingerprint_of(found.version);
}

Object::Object(const std::string& path, std::uint64_t size, std::uint64_t fingerprint, const Client& from,
               BlockCache& cache)
    : location_(parse_location(path)), client_(from), cache_(cache), size_(size), fingerprint_(fingerprint) {}

void Object::fetch(std::uint64_t offset, std::span<std::byte> out) const {
  if (fingerprint_of(client_.read(location_, offset, out)) == fingerprint_) return;
  throw Error(ExitCode::data, fmt::format("{}: has been replaced since it was opened or indexed; start again to use "
                                          "what is there now",
                                          location_.text()));
}

void Object::read(std::uint64_t offset, std::span<std::byte> out) const {
  LOCKSTEP_CHECK(offset <= size() && out.size() <= size() - offset, location_.text());
  if (!cache_.keeps() && !out.empty()) return fetch(offset, out);
  const std::string url = client_.access().bucket_url(location_.bucket) + "/" + location_.key;
  const std::string name = fmt::format("{}-{:016x}", sha256(url).substr(0, 24), fingerprint_);
  while (!out.empty()) {
    const std::uint64_t number = offset / kBlockBytes, begin = number * kBlockBytes;
    const std::uint64_t bytes = std::min(kBlockBytes, size() - begin);
    const auto here = out.first(std::min<std::uint64_t>(out.size(), begin + bytes - offset));
    cache_.read(name, number, bytes, offset - begin, here, [&](std::span<std::byte> block) { fetch(begin, block); });
    offset += here.size();
    out = out.subspan(here.size());
  }
}

}  // namespace lockstep::store
