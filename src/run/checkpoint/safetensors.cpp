#include "run/checkpoint/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/errno_code.hpp"
#include "core/files.hpp"
#include "core/low_precision.hpp"
#include "core/untrusted.hpp"
#include "lockstep/error.hpp"

namespace lockstep::checkpoint {

namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void bad_file(const std::string& name, const std::string& what) {
  throw Error(ExitCode::data, fmt::format("{}: not a usable safetensors file: {}", name, what));
}

bool is_zip(std::string_view bytes) {
  return bytes.starts_with("PK\x03\x04");
}

/// Python's pickle, protocols 2 to 5: torch.save before PyTorch 1.6.
bool is_pickle(std::string_view bytes) {
  return bytes.size() > 1 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
}

/// Other formats that weights are often stored in. Checked only if the first 8 bytes are no plausible header length,
/// since a valid file may begin with the same bytes.
void refuse_other_formats(std::string_view bytes, const std::string& name) {
  const bool torch = is_zip(bytes) ? bytes.find("/data.pkl") != bytes.npos : is_pickle(bytes);
  if (torch) {
    throw Error(ExitCode::data,
                fmt::format("{0}: expected a safetensors file, found a PyTorch checkpoint (a pickle, as torch.save "
                            "writes it); convert it in Python: safetensors.torch.save_file({{k: v.float().contiguous() "
                            "for k, v in torch.load('{0}', map_location='cpu').items()}}, 'weights.safetensors', "
                            "metadata={{'format': 'pt'}})",
                            name));
  }
  const bool hdf5 = bytes.starts_with("\x89HDF\r\n\x1a\n");
  if (!is_zip(bytes) && !hdf5) return;
  throw Error(ExitCode::data, fmt::format("{}: expected a safetensors file, found {}; save its tensors with Python's "
                                          "safetensors first",
                                          name, hdf5 ? "an HDF5 file (.h5)" : "a zip archive (.npz, .keras)"));
}

std::size_t dtype_bytes(const std::string& dtype) {
  if (dtype == "F64" || dtype == "I64" || dtype == "U64") return 8;
  if (dtype == "F32" || dtype == "I32" || dtype == "U32") return 4;
  if (dtype == "F16" || dtype == "BF16" || dtype == "I16" || dtype == "U16") return 2;
  return 1;
}

LoadedTensor read_entry(const Json& entry, std::span<const std::byte> data, const std::string& file,
                        const std::string& tensor) {
  LoadedTensor loaded;
  loaded.dtype = entry.at("dtype").get<std::string>();
  loaded.shape = shape_of(entry.at("shape"));
  const auto begin = integer_of<std::uint64_t>(entry.at("data_offsets").at(0));
  const auto end = integer_of<std::uint64_t>(entry.at("data_offsets").at(1));
  if (begin > end || end > data.size()) {
    bad_file(file,
             fmt::format("tensor '{}' spans bytes {} to {}, but the data has {}", tensor, begin, end, data.size()));
  }
  loaded.bytes = data.subspan(begin, end - begin);
  const auto wanted = checked_bytes(loaded.shape, dtype_bytes(loaded.dtype));
  if (!wanted) bad_file(file, fmt::format("tensor '{}' cannot have the shape {}", tensor, to_string(loaded.shape)));
  if (*wanted != loaded.bytes.size()) {
    bad_file(file, fmt::format("tensor '{}' of shape {} needs {} bytes, found {}", tensor, to_string(loaded.shape),
                               *wanted, loaded.bytes.size()));
  }
  return loaded;
}

}  // namespace

std::string safetensors_header(const std::vector<NamedShape>& tensors,
                               const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  for (const auto& tensor : tensors) {
    const std::uint64_t end = offset + elements(tensor.shape) * sizeof(float);
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  while (text.size() % 8 != 0) text += ' ';
  const std::uint64_t length = text.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + text;
}

std::string to_safetensors(const std::vector<NamedSpan>& tensors, const std::map<std::string, std::string>& metadata) {
  std::vector<NamedShape> shapes;
  std::size_t bytes = 0;
  for (const auto& tensor : tensors) {
    shapes.push_back({tensor.name, tensor.shape});
    bytes += tensor.values.size_bytes();
  }
  std::string file = safetensors_header(shapes, metadata);
  file.reserve(file.size() + bytes);
  for (const auto& tensor : tensors) {
    file.append(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size_bytes());
  }
  return file;
}

std::map<std::string, std::string> safetensors_metadata(std::string_view bytes) {
  std::uint64_t length = 0;
  if (bytes.size() < sizeof length) return {};
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > bytes.size() - sizeof length) return {};
  try {
    const Json header = Json::parse(bytes.substr(sizeof length, length));
    return header.at("__metadata__").get<std::map<std::string, std::string>>();
  } catch (const Json::exception&) {
    return {};
  }
}

SafetensorsFile SafetensorsFile::parse(std::string bytes, const std::string& name) {
  SafetensorsFile file;
  file.name_ = name;
  file.bytes_ = std::move(bytes);
  std::uint64_t length = 0;
  if (file.bytes_.size() < sizeof length) bad_file(name, "it is shorter than 8 bytes");
  std::memcpy(&length, file.bytes_.data(), sizeof length);
  if (length > file.bytes_.size() - sizeof length) {
    refuse_other_formats(file.bytes_, name);
    bad_file(name, fmt::format("its header of {} bytes is longer than the file", length));
  }
  try {
    const Json header = Json::parse(std::string_view(file.bytes_).substr(sizeof length, length));
    const auto data = std::as_bytes(std::span(file.bytes_)).subspan(sizeof length + length);
    for (const auto& [tensor, entry] : header.items()) {
      if (tensor == "__metadata__") {
        file.metadata_ = entry.get<std::map<std::string, std::string>>();
      } else {
        file.tensors_[tensor] = read_entry(entry, data, name, tensor);
      }
    }
  } catch (const Json::exception&) {
    bad_file(name, "its header is not the JSON that the format asks for");
  }
  return file;
}

SafetensorsFile SafetensorsFile::read(const std::string& path) {
  auto bytes = read_whole_file(path);
  if (!bytes) {
    throw Error(code_of_errno(errno, ExitCode::data),
                fmt::format("{}: expected a safetensors file, but it cannot be opened", path));
  }
  return parse(std::move(*bytes), path);
}

void SafetensorsFile::add(SafetensorsFile other) {
  tensors_.merge(other.tensors_);
  metadata_.merge(other.metadata_);
  others_.push_back(std::move(other.bytes_));
}

std::string SafetensorsFile::problem(const std::string& tensor, const Shape& shape) const {
  const LoadedTensor& loaded = tensors_.at(tensor);
  const bool known = loaded.dtype == "F32" || loaded.dtype == "F16" || loaded.dtype == "BF16";
  if (known && loaded.shape == shape) return "";
  return fmt::format("tensor '{}': expected {} {}, found {} {}", tensor, known ? loaded.dtype : "F32, F16 or BF16",
                     to_string(shape), loaded.dtype, to_string(loaded.shape));
}

void SafetensorsFile::require(const std::string& tensor, const Shape& shape) const {
  if (!tensors_.contains(tensor)) throw Error(ExitCode::data, fmt::format("{}: it has no tensor '{}'", name_, tensor));
  const std::string found = problem(tensor, shape);
  if (!found.empty()) throw Error(ExitCode::data, fmt::format("{}: {}", name_, found));
}

void SafetensorsFile::copy(const std::string& tensor, const Shape& shape, std::span<float> out,
                           std::int64_t first) const {
  require(tensor, shape);
  const LoadedTensor& loaded = tensors_.at(tensor);
  const std::size_t each = dtype_bytes(loaded.dtype);
  const auto bytes = loaded.bytes.subspan(first * each, out.size() * each);
  if (each == sizeof(float)) {
    std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(out).begin());
    return;
  }
  const bool is_half = loaded.dtype == "F16";
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * each, sizeof bits);
    out[i] = is_half ? Float16::to_float(bits) : Bfloat16::to_float(bits);
  }
}

}  // namespace lockstep::checkpoint
