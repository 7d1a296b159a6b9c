// A weight [out, in] as the right factor of a product on the CPU. It is packed once per version of the parameters,
// unless nothing may be kept, or each call uses it for so many rows that the cost of packing is negligible.
#pragma once

#include <cstdint>
#include <optional>

#include "device/cpu/gemm.hpp"

namespace lockstep::ops {

class KeptWeight {
 public:
  /// `rows`: of each product; `transposed`: the product is x [rows, in] * weight^T, else x [rows, out] * weight.
  KeptWeight(std::int64_t in, std::int64_t out, std::int64_t rows, bool keeps, bool transposed)
      : is_kept_(keeps && rows <= kFewRows),
        rows_(rows),
        k_(transposed ? in : out),
        n_(transposed ? out : in),
        in_(in),
        transposed_(transposed) {}

  std::size_t bytes() const { return is_kept_ ? device::PackedMatrix::bytes(k_, n_) : 0; }

  /// result[rows, n] = x[rows, k] * weight
  void multiply(device::MatrixView x, const float* weight, std::uint64_t version, device::MatrixResult result) {
    const device::MatrixView view{weight, in_, transposed_};
    if (!is_kept_) return device::gemm(rows_, n_, k_, x, view, result);
    if (version_ != version) {
      if (!version_) packed_ = device::PackedMatrix(k_, n_);
      packed_.pack(view);
      version_ = version;
    }
    device::gemm(rows_, x, packed_, result);
  }

 private:
  static constexpr std::int64_t kFewRows = 1024;
  bool is_kept_;
  std::int64_t rows_, k_, n_, in_;
  bool transposed_;
  device::PackedMatrix packed_;
  std::optional<std::uint64_t> version_;
};

}  // namespace lockstep::ops
