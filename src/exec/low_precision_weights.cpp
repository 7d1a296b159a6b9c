#include "exec/low_precision_weights.hpp"

#include "core/round_up.hpp"

namespace lockstep::exec {

namespace {

constexpr std::size_t kCopyAlignment = 256;  // as Gpu::allocate() gives it, for libraries

std::size_t lay_out(const TensorBlock& parameters, const std::vector<DType>& types, std::vector<std::size_t>& starts) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    starts.push_back(at);
    if (types.at(i) == DType::f32) continue;
    at += round_up(parameters.at(i).size() * size_of(types[i]), kCopyAlignment);
  }
  return at;
}

}  // namespace

std::size_t LowPrecisionWeights::bytes(const TensorBlock& parameters, const std::vector<DType>& types) {
  std::vector<std::size_t> starts;
  return lay_out(parameters, types, starts);
}

LowPrecisionWeights::LowPrecisionWeights(device::Gpu& gpu, const TensorBlock& parameters,
                                         const std::vector<DType>& types)
    : gpu_(gpu), types_(types), device_(gpu, lay_out(parameters, types, starts_)) {}

void LowPrecisionWeights::make(std::size_t parameter, device::Gpu::Stream stream, const float* from,
                               std::int64_t elements) const {
  if (std::byte* const copy = at(parameter); copy != nullptr) {
    gpu_.cast(stream, device::Cast::downcast, type(parameter), from, copy, elements);
  }
}

}  // namespace lockstep::exec
