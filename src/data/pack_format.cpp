#include "data/pack_format.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/untrusted.hpp"
#include "data/bytes.hpp"
#include "data/readers/prepare.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

constexpr std::string_view kPackMagic = "LOCKSTEP-PACK-1\n", kEnd = "END\n";

constexpr const char* kEntryTooShort = "damaged packed file: an entry ends too early";

constexpr std::array kDTypes{DType::f32, DType::bf16, DType::f16, DType::f64,
                             DType::i64, DType::i32,  DType::u16, DType::u8};
constexpr std::array<const char*, 5> kKinds{"image", "label", "tokens", "tensor", "columns"};

DType dtype_named(const std::string& name) {
  for (const DType dtype : kDTypes) {
    if (name_of(dtype) == name) return dtype;
  }
  throw Error(ExitCode::data, fmt::format("packed with an element type '{}' that this version does not know", name));
}

Feature::Kind kind_named(const std::string& name) {
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (name == kKinds.at(i)) return static_cast<Feature::Kind>(i);
  }
  return Feature::Kind::tensor;
}

void check_feature(const Feature& feature) {
  if (is_sound(feature)) return;
  throw Error(ExitCode::data, fmt::format("damaged packed file: '{}' is of kind {}, but {} {}", feature.name,
                                          kKinds.at(static_cast<std::size_t>(feature.kind)),
                                          name_of(feature.spec.dtype), to_string(feature.spec.shape)));
}

}  // namespace

std::uint64_t PackRecord::length() const {
  std::uint64_t sum = 0;
  for (const auto& payload : payloads) sum += payload.length;
  return sum;
}

std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before) {
  return crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}

std::string write_header(const PackHeader& header) {
  std::string out(kPackMagic);
  append(out, header.segment);
  append(out, header.segments);
  append(out, crc32_of(std::as_bytes(std::span(out))));
  append(out, std::uint32_t{0});
  return out;
}

PackHeader read_header(std::span<const std::byte> bytes) {
  ByteReader cursor(bytes, kEntryTooShort);
  if (bytes.size() < kPackHeaderBytes || cursor.text(kPackMagic.size()) != kPackMagic) {
    throw Error(ExitCode::data, "not a file that `lockstep data pack` wrote");
  }
  PackHeader header;
  header.segment = cursor.value<std::uint32_t>();
  header.segments = cursor.value<std::uint32_t>();
  if (cursor.value<std::uint32_t>() != crc32_of(bytes.first(24)) || header.segment >= header.segments) {
    throw Error(ExitCode::data, "damaged packed file: the header's checksum differs");
  }
  return header;
}

std::string write_footer(const PackFooter& footer) {
  std::string out;
  append(out, footer.meta_offset);
  append(out, footer.meta_length);
  append(out, footer.index_length);
  append(out, footer.checksum);
  return out + std::string(kEnd);
}

PackFooter read_footer(std::span<const std::byte> bytes) {
  ByteReader cursor(bytes, kEntryTooShort);
  PackFooter footer;
  footer.meta_offset = cursor.value<std::uint64_t>();
  footer.meta_length = cursor.value<std::uint64_t>();
  footer.index_length = cursor.value<std::uint64_t>();
  footer.checksum = cursor.value<std::uint32_t>();
  if (cursor.text(kEnd.size()) != kEnd) throw Error(ExitCode::data, "truncated packed file: no end mark");
  return footer;
}

std::string write_meta(const DataSetInfo& info, std::int64_t samples) {
  nlohmann::json features = nlohmann::json::array();
  for (const auto& feature : info.features) {
    features.push_back({{"name", feature.name},
                        {"kind", kKinds.at(static_cast<std::size_t>(feature.kind))},
                        {"dtype", std::string(name_of(feature.spec.dtype))},
                        {"shape", feature.spec.shape}});
  }
  const nlohmann::json meta{{"samples", samples},
                            {"format", info.format},
                            {"digest", info.digest},
                            {"class_names", info.class_names},
                            {"features", std::move(features)}};
  return meta.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

DataSetInfo read_meta(std::span<const std::byte> bytes, std::int64_t& samples) {
  try {
    const auto meta = nlohmann::json::parse(reinterpret_cast<const char*>(bytes.data()),
                                            reinterpret_cast<const char*>(bytes.data()) + bytes.size());
    DataSetInfo info;
    samples = integer_of<std::int64_t>(meta.at("samples"));
    info.format = meta.at("format").get<std::string>();
    info.digest = meta.at("digest").get<std::string>();
    info.class_names = meta.at("class_names").get<std::vector<std::string>>();
    for (const auto& feature : meta.at("features")) {
      info.features.push_back({feature.at("name").get<std::string>(),
                               kind_named(feature.at("kind").get<std::string>()),
                               {dtype_named(feature.at("dtype").get<std::string>()), shape_of(feature.at("shape"))}});
      check_feature(info.features.back());
    }
    if (info.features.empty()) throw Error(ExitCode::data, "damaged packed file: its samples have no features");
    return info;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ExitCode::data, fmt::format("damaged packed file: its description cannot be read ({})", error.what()));
  }
}

void append_record(std::string& index, const PackRecord& record) {
  append(index, record.offset);
  append(index, record.checksum);
  append(index, record.label);
  const std::string name = record.name.substr(0, 0xFFFF);
  append(index, static_cast<std::uint16_t>(name.size()));
  index += name;
  for (const auto& payload : record.payloads) {
    append(index, static_cast<std::uint8_t>(payload.encoding));
    append(index, payload.length);
  }
}

std::vector<PackRecord> read_index(std::span<const std::byte> bytes, std::int64_t samples, std::size_t features) {
  ByteReader cursor(bytes, kEntryTooShort);
  std::vector<PackRecord> records;
  for (std::int64_t i = 0; i < samples; ++i) {
    PackRecord record;
    record.offset = cursor.value<std::uint64_t>();
    record.checksum = cursor.value<std::uint32_t>();
    record.label = cursor.value<std::int32_t>();
    record.name = cursor.text(cursor.value<std::uint16_t>());
    for (std::size_t f = 0; f < features; ++f) {
      const auto encoding = static_cast<PackEncoding>(cursor.value<std::uint8_t>());
      if (encoding > PackEncoding::file) throw Error(ExitCode::data, "damaged packed file: a value in no known form");
      record.payloads.push_back({encoding, cursor.value<std::uint32_t>()});
    }
    records.push_back(std::move(record));
  }
  return records;
}

void append_tensor(std::string& payload, const Tensor& tensor) {
  append(payload, static_cast<std::uint8_t>(tensor.shape().size()));
  for (const auto size : tensor.shape()) append(payload, static_cast<std::uint32_t>(size));
  payload.append(reinterpret_cast<const char*>(tensor.bytes()), tensor.spec().bytes());
}

void read_tensor(std::span<const std::byte> payload, DType dtype, Tensor& out) {
  ByteReader cursor(payload, kEntryTooShort);
  Shape shape(cursor.value<std::uint8_t>());
  for (auto& size : shape) size = cursor.value<std::uint32_t>();
  const TensorSpec spec{dtype, shape};
  if (checked_bytes(shape, size_of(dtype)) != cursor.rest().size()) {
    throw Error(ExitCode::data,
                fmt::format("damaged packed file: a tensor {} of {} bytes", to_string(shape), cursor.rest().size()));
  }
  prepare(out, spec);
  std::memcpy(out.bytes(), cursor.rest().data(), spec.bytes());
}

}  // namespace lockstep::data
