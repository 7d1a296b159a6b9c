// safetensors files: tensors by name, written in fp32, read from fp32, fp16 and bf16. Format: 8 bytes of little-endian
// header length, a JSON header {"name": {"dtype", "shape", "data_offsets"}}, padded with spaces, then the data without
// holes.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/tensor.hpp"

namespace lockstep::checkpoint {

struct NamedSpan {
  std::string name;
  Shape shape;
  std::span<const float> values;
};

/// An fp32 tensor without its values.
struct NamedShape {
  std::string name;
  Shape shape;
};

/// The 8 bytes of length and the header, for tensors that follow one another; a multiple of 8 bytes.
[[nodiscard]] std::string safetensors_header(const std::vector<NamedShape>& tensors,
                                             const std::map<std::string, std::string>& metadata);

/// The whole file as bytes. Tensors keep their order; names must be distinct.
[[nodiscard]] std::string to_safetensors(const std::vector<NamedSpan>& tensors,
                                         const std::map<std::string, std::string>& metadata);

struct LoadedTensor {
  std::string dtype;  ///< "F32", "BF16", ...
  Shape shape;
  std::span<const std::byte> bytes;
};

/// What a file says of itself, without its tensors; nothing if it is damaged, which parse() tells.
[[nodiscard]] std::map<std::string, std::string> safetensors_metadata(std::string_view bytes);

/// A parsed file. Every offset has been checked against the file's size.
class SafetensorsFile {
 public:
  SafetensorsFile() = default;
  /// Without tensors; add() adds those of files.
  explicit SafetensorsFile(std::string name) : name_(std::move(name)) {}
  /// Throws Error(data) that names the file and what is wrong.
  static SafetensorsFile parse(std::string bytes, const std::string& name);
  static SafetensorsFile read(const std::string& path);
  /// Takes the tensors of another file, too, and its metadata.
  void add(SafetensorsFile other);

  const std::map<std::string, LoadedTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& name() const { return name_; }
  /// the whole file; no other function may be called afterwards
  [[nodiscard]] std::string release() { return std::move(bytes_); }
  /// "tensor 'a': expected F32 [3], found F32 [2]" of a tensor that the file has; empty: it has this shape, and a type
  /// that copy() can read.
  std::string problem(const std::string& tensor, const Shape& shape) const;
  /// Throws Error(data) if the tensor is missing, of another shape, or of a type other than F32, F16 and BF16.
  void require(const std::string& tensor, const Shape& shape) const;
  /// Copies elements from `first` on until `out` is full; require() must have succeeded, and there must be as many.
  void copy(const std::string& tensor, const Shape& shape, std::span<float> out, std::int64_t first = 0) const;

 private:
  std::string name_, bytes_;
  std::vector<std::string> others_;  ///< the bytes of other files
  std::map<std::string, LoadedTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace lockstep::checkpoint
