// The layout of a packed file, version 1; all numbers are little-endian.
//
//   header   32 bytes: magic "LOCKSTEP-PACK-1\n", u32 segment, u32 segments, u32 crc32 of these 24 bytes, u32 0
//   records  one after another; a record is its features' payloads in order
//   meta     JSON: the DataSetInfo, and the number of samples in this segment and in total
//   index    per record: u64 offset, u32 crc32 of the record, i32 label, u16 length of the name, the name, and per
//            feature u8 encoding and u32 length of the payload
//   footer   32 bytes: u64 offset of meta, u64 length of meta, u64 length of the index, u32 crc32 of both, "END\n"
//
// A payload is a whole JPEG or PNG file (encoding 1), or u8 rank, u32 per dimension, and the tensor's bytes (0).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data_set.hpp"

namespace lockstep::data {

inline constexpr std::size_t kPackHeaderBytes = 32, kPackFooterBytes = 32;

enum class PackEncoding : std::uint8_t { tensor = 0, file = 1 };

struct PackPayload {
  PackEncoding encoding = PackEncoding::tensor;
  std::uint32_t length = 0;
};

struct PackRecord {
  std::uint64_t offset = 0;
  std::uint32_t checksum = 0;
  std::int32_t label = -1;
  std::string name;
  std::vector<PackPayload> payloads;  ///< by feature
  std::uint64_t length() const;
};

struct PackHeader {
  std::uint32_t segment = 0, segments = 0;
};

struct PackFooter {
  std::uint64_t meta_offset = 0, meta_length = 0, index_length = 0;
  std::uint32_t checksum = 0;
};

[[nodiscard]] std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before = 0);

[[nodiscard]] std::string write_header(const PackHeader& header);
[[nodiscard]] std::string write_footer(const PackFooter& footer);
[[nodiscard]] std::string write_meta(const DataSetInfo& info, std::int64_t samples);
void append_record(std::string& index, const PackRecord& record);
void append_tensor(std::string& payload, const Tensor& tensor);

// These readers throw Error(data) without a file's name.
[[nodiscard]] PackHeader read_header(std::span<const std::byte> bytes);
[[nodiscard]] PackFooter read_footer(std::span<const std::byte> bytes);
/// Format, features, classes, vocabulary and digest; `samples` receives the number of records.
[[nodiscard]] DataSetInfo read_meta(std::span<const std::byte> bytes, std::int64_t& samples);
[[nodiscard]] std::vector<PackRecord> read_index(std::span<const std::byte> bytes, std::int64_t samples,
                                                 std::size_t features);
void read_tensor(std::span<const std::byte> payload, DType dtype, Tensor& out);

}  // namespace lockstep::data
