// Mutates a packed set, then corrects the checksums of its header, of its index and of each record.
#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "data/pack_format.hpp"
#include "fuzz/mutator.hpp"
#include "lockstep/error.hpp"

namespace {

using namespace lockstep;

void put(std::vector<std::uint8_t>& file, std::size_t at, std::uint32_t value) {
  std::memcpy(file.data() + at, &value, sizeof value);
}

std::uint32_t crc(const std::vector<std::uint8_t>& file, std::size_t at, std::size_t length) {
  return data::crc32_of(std::as_bytes(std::span(file)).subspan(at, length));
}

/// The records' own checksums, which are in the index, if it can be read.
void repair_records(std::vector<std::uint8_t>& file, const data::PackFooter& footer, std::size_t index) {
  const auto bytes = std::as_bytes(std::span(file));
  std::int64_t samples = 0;
  const auto info = data::read_meta(bytes.subspan(footer.meta_offset, footer.meta_length), samples);
  const auto records = data::read_index(bytes.subspan(index, footer.index_length), samples, info.features.size());
  std::size_t at = index;
  for (const auto& record : records) {
    const bool inside = record.offset <= file.size() && record.length() <= file.size() - record.offset;
    if (inside) put(file, at + sizeof record.offset, crc(file, record.offset, record.length()));
    at += 18 + record.name.size() + 5 * record.payloads.size();
  }
}

}  // namespace

void lockstep::fuzz::repair(std::vector<std::uint8_t>& file) {
  constexpr std::size_t kHeaderSum = 24;
  if (file.size() < data::kPackHeaderBytes + data::kPackFooterBytes) return;
  put(file, kHeaderSum, crc(file, 0, kHeaderSum));
  const std::size_t end = file.size() - data::kPackFooterBytes;
  try {
    auto footer = data::read_footer(std::as_bytes(std::span(file)).subspan(end));
    // Where the parts are after a mutation: the description begins with its first key; the length of the index is
    // known.
    footer.index_length = std::min<std::uint64_t>(footer.index_length, end - data::kPackHeaderBytes);
    footer.meta_length = std::min(footer.meta_length, end - data::kPackHeaderBytes - footer.index_length);
    const std::string_view all(reinterpret_cast<const char*>(file.data()), end - footer.index_length);
    if (const auto begin = all.rfind("{\"class_names\""); begin != std::string_view::npos) {
      footer.meta_length = all.size() - begin;
    }
    footer.meta_offset = end - footer.index_length - footer.meta_length;
    try {
      repair_records(file, footer, end - footer.index_length);
    } catch (const Error&) {
      // The parser then refuses it, too, for that and not for a checksum.
    }
    footer.checksum = crc(file, footer.meta_offset, footer.meta_length + footer.index_length);
    const std::string text = data::write_footer(footer);
    std::copy(text.begin(), text.end(), file.end() - static_cast<std::ptrdiff_t>(text.size()));
  } catch (const Error&) {
    return;
  }
}
