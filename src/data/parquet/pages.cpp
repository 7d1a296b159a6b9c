#include "data/parquet/pages.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <snappy.h>
#include <zlib.h>

#include <span>

#include "data/gunzip.hpp"
#include "data/parquet/encodings.hpp"

namespace lockstep::data {
namespace {

/// Numbers of fields and values are those of parquet.thrift.
namespace chunk_field {
constexpr int kFile = 1, kMetadata = 3;
constexpr int kCodec = 4, kValues = 5, kPackedBytes = 7, kPages = 9, kDictionary = 11;  // of the metadata
}  // namespace chunk_field
namespace page_field {
constexpr int kKind = 1, kBytes = 2, kPackedBytes = 3, kSum = 4, kData = 5, kDictionary = 7, kData2 = 8;
constexpr int kValues = 1, kEncoding = 2;                                 // of each
constexpr int kEncoding2 = 4, kLevels2 = 5, kRepeats2 = 6, kPacked2 = 7;  // of the second form of data pages
}  // namespace page_field
enum class PageKind : std::int8_t { data = 0, index, dictionary, data2 };
enum class Codec : std::int8_t { none = 0, snappy, gzip, lzo, brotli, lz4, zstd, lz4_raw };

constexpr const char* kTooShort = "damaged: a page ends too early";

[[noreturn]] void damaged_page() {
  throw Error(ExitCode::data, "damaged: a page cannot be unpacked");
}

std::string unpack_gzip(std::string_view packed, std::size_t bytes) {
  Gunzip gunzip("its page");
  std::string out(bytes + 1, '\0');  // one more, so that the end with its sum is read
  auto rest = std::as_bytes(std::span(packed));
  if (gunzip.unpack(rest, std::as_writable_bytes(std::span(out))) != bytes) damaged_page();
  gunzip.finish();
  out.pop_back();
  return out;
}

std::string unpack_zstd(std::string_view packed, std::size_t bytes) {
  const ArchiveHandle handle(archive_read_new());
  archive_read_support_format_raw(handle.get());
  archive_read_support_filter_zstd(handle.get());
  archive_entry* entry = nullptr;
  std::string out(bytes, '\0');
  if (archive_read_open_memory(handle.get(), packed.data(), packed.size()) != ARCHIVE_OK ||
      archive_read_next_header(handle.get(), &entry) != ARCHIVE_OK) {
    damaged_page();
  }
  for (std::size_t got = 0; got < bytes;) {
    const auto more = archive_read_data(handle.get(), out.data() + got, bytes - got);
    if (more <= 0) damaged_page();
    got += more;
  }
  return out;
}

std::string unpack(Codec codec, std::string_view packed, std::size_t bytes) {
  if (bytes == 0) return {};
  switch (codec) {
    case Codec::none:
      return std::string(packed);
    case Codec::snappy: {
      std::string out;
      std::size_t length = 0;
      if (!snappy::GetUncompressedLength(packed.data(), packed.size(), &length) || length != bytes ||
          !snappy::Uncompress(packed.data(), packed.size(), &out)) {
        damaged_page();
      }
      return out;
    }
    case Codec::gzip:
      return unpack_gzip(packed, bytes);
    case Codec::zstd:
      return unpack_zstd(packed, bytes);
    default:
      throw Error(ExitCode::data,
                  fmt::format("compressed with {}, which is not read; write the file with snappy, gzip or zstd",
                              codec == Codec::brotli ? "Brotli"
                              : codec == Codec::lzo  ? "LZO"
                                                     : "LZ4"));
  }
}

std::size_t count_of(std::int64_t number) {
  if (number < 0 || number > std::int64_t{1} << 40) damaged_page();
  return number;
}

/// Reads pages one after the other and adds their values to `texts`.
class ChunkReader {
 public:
  ChunkReader(const ParquetColumn& column, Codec codec, std::size_t rows, ParquetBudget& budget)
      : column_(column), codec_(codec), rows_(rows), budget_(budget) {}

  std::vector<std::string> texts;

  void read_page(ByteReader& in) {
    const CompactValue header = read_compact(in);
    const std::size_t bytes = count_of(header.at(page_field::kBytes).number);
    const std::string packed = in.text(count_of(header.at(page_field::kPackedBytes).number));
    if (const CompactValue* const sum = header.find(page_field::kSum)) {
      const auto found = crc32_z(0, reinterpret_cast<const Bytef*>(packed.data()), packed.size());
      if (static_cast<std::uint32_t>(sum->number) != found) {
        throw Error(ExitCode::data, "damaged: a page has another CRC-32 than its header says");
      }
    }
    switch (PageKind{static_cast<std::int8_t>(header.at(page_field::kKind).number)}) {
      case PageKind::data:
        read_data(header.at(page_field::kData), unpacked(packed, bytes));
        break;
      case PageKind::dictionary:
        read_dictionary(header.at(page_field::kDictionary), unpacked(packed, bytes));
        break;
      case PageKind::data2:
        read_data2(header.at(page_field::kData2), packed, bytes);
        break;
      default:
        break;  // an index, which reading all values does not need
    }
  }

 private:
  std::string unpacked(std::string_view packed, std::size_t bytes) const {
    budget_.require(bytes);
    return unpack(codec_, packed, bytes);
  }

  std::size_t count_values(const CompactValue& page) const {
    const std::size_t count = count_of(page.at(page_field::kValues).number);
    if (count > rows_ - texts.size()) {
      throw Error(ExitCode::data, fmt::format("damaged: its pages have more values than there are rows, {}", rows_));
    }
    return count;
  }

  void read_dictionary(const CompactValue& page, const std::string& bytes) {
    const std::size_t count = count_of(page.at(page_field::kValues).number);
    budget_.require(count * sizeof(std::string));
    ByteReader in(bytes, kTooShort);
    dictionary_.clear();
    for (const auto& raw : read_values(in, ParquetEncoding::plain, column_.type, column_.width, count)) {
      dictionary_.push_back(column_.text_of(raw));
    }
  }

  void read_data(const CompactValue& page, const std::string& bytes) {
    const std::size_t count = count_values(page);
    ByteReader in(bytes, kTooShort);
    std::vector<std::uint32_t> present(count, 1);
    if (column_.optional) {
      ByteReader levels(in.take(in.value<std::uint32_t>()), kTooShort);
      present = read_runs(levels, 1, count);
    }
    add(in, encoding_of(page, page_field::kEncoding), present);
  }

  /// Its levels are not packed, and have their lengths in the header.
  void read_data2(const CompactValue& page, std::string_view packed, std::size_t bytes) {
    const std::size_t count = count_values(page);
    const std::size_t length = count_of(page.number_of(page_field::kLevels2, 0));
    if (page.number_of(page_field::kRepeats2, 0) != 0 || length > packed.size() || length > bytes) damaged_page();
    ByteReader levels(packed.substr(0, length), kTooShort);
    const std::string_view rest = packed.substr(length);
    const auto present = column_.optional ? read_runs(levels, 1, count) : std::vector<std::uint32_t>(count, 1);
    const bool is_packed = page.number_of(page_field::kPacked2, 1) != 0;
    const std::string values = is_packed ? unpacked(rest, bytes - length) : std::string(rest);
    ByteReader in(values, kTooShort);
    add(in, encoding_of(page, page_field::kEncoding2), present);
  }

  static ParquetEncoding encoding_of(const CompactValue& page, int field) {
    return ParquetEncoding{static_cast<std::int8_t>(page.at(field).number)};
  }

  /// `present`: 1 where a row has a value, 0 where it has none.
  void add(ByteReader& in, ParquetEncoding encoding, const std::vector<std::uint32_t>& present) {
    std::size_t count = 0;
    for (const auto one : present) count += one;
    std::vector<std::string> values;
    if (encoding == ParquetEncoding::rle_dictionary || encoding == ParquetEncoding::plain_dictionary) {
      const unsigned width = count > 0 ? in.value<std::uint8_t>() : 0;
      const auto entries = read_runs(in, width, count);
      std::uint64_t characters = 0;  // counted before they are copied: few bytes may name a long text many times
      for (const std::uint32_t entry : entries) {
        if (entry >= dictionary_.size()) damaged_page();
        characters += dictionary_[entry].size();
      }
      hold_characters(characters);
      for (const std::uint32_t entry : entries) values.push_back(dictionary_[entry]);
    } else if (count > 0) {
      for (const auto& raw : read_values(in, encoding, column_.type, column_.width, count)) {
        values.push_back(column_.text_of(raw));
        hold_characters(values.back().size());
      }
    }
    auto value = values.begin();
    for (const auto one : present) texts.push_back(one != 0 ? std::move(*value++) : std::string());
  }

  /// Those of other columns are few for each value, and its string has room for most.
  void hold_characters(std::uint64_t count) {
    if (column_.meaning == ParquetColumn::Meaning::text) budget_.hold(count);
  }

  const ParquetColumn& column_;
  Codec codec_;
  std::size_t rows_;
  ParquetBudget& budget_;
  std::vector<std::string> dictionary_;
};

}  // namespace

std::vector<std::string> read_column_chunk(std::string_view file, const CompactValue& chunk,
                                           const ParquetColumn& column, std::int64_t rows, ParquetBudget& budget) {
  if (const CompactValue* other = chunk.find(chunk_field::kFile); other != nullptr && !other->bytes.empty()) {
    throw Error(ExitCode::data, fmt::format("its values are in another file, '{}'; write all into one", other->bytes));
  }
  const CompactValue& metadata = chunk.at(chunk_field::kMetadata);
  const std::int64_t codec = metadata.at(chunk_field::kCodec).number;
  if (codec < 0 || codec > static_cast<int>(Codec::lz4_raw)) damaged_page();
  const std::int64_t pages = metadata.at(chunk_field::kPages).number;
  const std::int64_t dictionary = metadata.number_of(chunk_field::kDictionary, 0);
  const std::size_t first = count_of(dictionary > 0 && dictionary < pages ? dictionary : pages);
  const std::size_t length = count_of(metadata.at(chunk_field::kPackedBytes).number);
  if (first > file.size() || length > file.size() - first) damaged_page();
  const std::int64_t values = metadata.at(chunk_field::kValues).number;
  if (values != rows) {
    throw Error(ExitCode::data, fmt::format("damaged: it has {} values where there are {} rows", values, rows));
  }
  const std::size_t count = count_of(values);

  ChunkReader reader(column, Codec{static_cast<std::int8_t>(codec)}, count, budget);
  ByteReader in(file.substr(first, length), kTooShort);
  while (reader.texts.size() < count) reader.read_page(in);
  return std::move(reader.texts);
}

}  // namespace lockstep::data
