#include "data/parquet/encodings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "data/parquet/compact.hpp"

namespace lockstep::data {
namespace {

[[noreturn]] void damaged_values() {
  throw Error(ExitCode::data, "damaged: a page's values cannot be read");
}

/// Numbers of `width` bits, the lowest first, packed into bytes.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t next(unsigned width) {
    std::uint64_t number = 0;
    for (unsigned got = 0; got < width;) {
      if (at_ / 8 >= bytes_.size()) damaged_values();
      const unsigned offset = at_ % 8, taken = std::min(8 - offset, width - got);
      const auto byte = std::to_integer<std::uint64_t>(bytes_[at_ / 8]);
      number |= (byte >> offset & ((1U << taken) - 1)) << got;
      got += taken;
      at_ += taken;
    }
    return number;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

std::size_t size_of(ParquetType type, std::size_t width) {
  switch (type) {
    case ParquetType::i32:
    case ParquetType::f32:
      return 4;
    case ParquetType::i64:
    case ParquetType::f64:
      return 8;
    case ParquetType::i96:
      return 12;
    default:
      return width;
  }
}

std::vector<std::string> read_plain(ByteReader& in, ParquetType type, std::size_t width, std::size_t count) {
  std::vector<std::string> values;
  if (type == ParquetType::boolean) {
    BitReader bits(in.take((count + 7) / 8));
    for (std::size_t i = 0; i < count; ++i) values.emplace_back(1, static_cast<char>(bits.next(1)));
    return values;
  }
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(in.text(type == ParquetType::bytes ? in.value<std::uint32_t>() : size_of(type, width)));
  }
  return values;
}

/// Differences in blocks of some miniblocks, each with a width of its own. Sums wrap around, as the format says.
std::vector<std::int64_t> read_deltas(ByteReader& in, std::size_t count) {
  const std::uint64_t block = read_varint(in), parts = read_varint(in), total = read_varint(in);
  std::uint64_t last = read_zigzag(in);
  if (total != count || parts == 0 || parts > 1024 || block == 0 || block > 1U << 20U || block % (parts * 8) != 0) {
    damaged_values();
  }
  std::vector<std::int64_t> numbers;
  if (count > 0) numbers.push_back(last);
  while (numbers.size() < count) {
    const std::uint64_t least = read_zigzag(in);
    const auto widths = in.take(parts);
    for (std::size_t part = 0; part < parts && numbers.size() < count; ++part) {
      const auto width = std::to_integer<unsigned>(widths[part]);
      if (width > 64) damaged_values();
      BitReader bits(in.take(block / parts * width / 8));
      for (std::uint64_t i = 0; i < block / parts && numbers.size() < count; ++i) {
        last += least + bits.next(width);
        numbers.push_back(last);
      }
    }
  }
  return numbers;
}

std::vector<std::string> read_delta_numbers(ByteReader& in, ParquetType type, std::size_t count) {
  if (type != ParquetType::i32 && type != ParquetType::i64) damaged_values();
  std::vector<std::string> values;
  for (const std::int64_t number : read_deltas(in, count)) {
    values.emplace_back(reinterpret_cast<const char*>(&number), size_of(type, 0));
  }
  return values;
}

std::vector<std::string> read_delta_lengths(ByteReader& in, std::size_t count) {
  std::vector<std::string> values;
  for (const std::int64_t length : read_deltas(in, count))
    values.push_back(in.text(static_cast<std::uint64_t>(length)));
  return values;
}

/// Texts without what they begin with as the one before them does.
std::vector<std::string> read_delta_bytes(ByteReader& in, std::size_t count) {
  const auto shared = read_deltas(in, count);
  std::vector<std::string> values = read_delta_lengths(in, count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t length = shared[i];
    if (length > (i == 0 ? 0 : values[i - 1].size())) damaged_values();
    if (length > 0) values[i].insert(0, values[i - 1], 0, length);
  }
  return values;
}

/// The first byte of all values, then the second of all, and so on.
std::vector<std::string> read_split(ByteReader& in, ParquetType type, std::size_t width, std::size_t count) {
  const std::size_t size = size_of(type, width);
  if (type == ParquetType::bytes || type == ParquetType::boolean) damaged_values();
  std::vector<std::string> values(count, std::string(size, '\0'));
  for (std::size_t byte = 0; byte < size; ++byte) {
    const auto plane = in.take(count);
    for (std::size_t i = 0; i < count; ++i) values[i][byte] = static_cast<char>(plane[i]);
  }
  return values;
}

}  // namespace

std::vector<std::uint32_t> read_runs(ByteReader& in, unsigned width, std::size_t count) {
  if (width > 32) damaged_values();
  std::vector<std::uint32_t> numbers;
  while (numbers.size() < count) {
    const std::uint64_t head = read_varint(in), size = head >> 1U;
    if (size == 0) damaged_values();
    if ((head & 1U) == 0) {  // one number, some times
      std::uint32_t number = 0;
      const auto bytes = in.take((width + 7) / 8);
      std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(&number));
      numbers.resize(std::min<std::uint64_t>(count, numbers.size() + std::min<std::uint64_t>(size, count)), number);
    } else {  // groups of eight
      if (size > in.rest().size() && width > 0) damaged_values();
      // The last group may be cut short by the page's end.
      BitReader bits(in.take(std::min<std::uint64_t>(size * width, in.rest().size())));
      for (std::uint64_t i = 0; i / 8 < size && numbers.size() < count; ++i) {
        numbers.push_back(bits.next(width));
      }
    }
  }
  return numbers;
}

std::vector<std::string> read_values(ByteReader& in, ParquetEncoding encoding, ParquetType type, std::size_t width,
                                     std::size_t count) {
  switch (encoding) {
    case ParquetEncoding::plain:
      return read_plain(in, type, width, count);
    case ParquetEncoding::delta_numbers:
      return read_delta_numbers(in, type, count);
    case ParquetEncoding::delta_lengths:
      return read_delta_lengths(in, count);
    case ParquetEncoding::delta_bytes:
      return read_delta_bytes(in, count);
    case ParquetEncoding::split_bytes:
      return read_split(in, type, width, count);
    case ParquetEncoding::rle: {
      if (type != ParquetType::boolean) damaged_values();
      ByteReader runs(in.take(in.value<std::uint32_t>()), "damaged: a page ends too early");
      std::vector<std::string> values;
      for (const std::uint32_t bit : read_runs(runs, 1, count)) values.emplace_back(1, static_cast<char>(bit));
      return values;
    }
    default:
      throw Error(ExitCode::data,
                  fmt::format("values in encoding {} cannot be read; write the file with PLAIN, dictionary or DELTA "
                              "encodings",
                              static_cast<int>(encoding)));
  }
}

}  // namespace lockstep::data
