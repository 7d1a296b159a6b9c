// A library's product, simulated on the CPU from nothing but what the library is told: a stand-in for
// device::LtProduct, in column order, with the epilogues defined by cublasLtEpilogue_t. Its GpuStream determines what
// it proposes.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "device/gpu/elements.hpp"
#include "device/gpu/product_form.hpp"
#include "device/gpu/wanted_algorithm.hpp"
#include "lockstep/error.hpp"
#include "ops/gelu/gelu_grid.hpp"

namespace lockstep {

class GpuStream {
 public:
  std::function<bool(const device::ProductForm&)> proposes;
};

namespace ops {

class PlayedProduct {
 public:
  static std::optional<PlayedProduct> make(const GpuStream& stream, const device::ColumnProduct& product,
                                           std::span<const device::ProductForm> forms,
                                           const device::WantedAlgorithm& wanted) {
    const auto found = std::find_if(forms.begin(), forms.end(), [&](const device::ProductForm& form) {
      return stream.proposes(form) && (wanted.name.empty() || PlayedProduct(product, form).name() == wanted.name);
    });
    if (found == forms.end()) return std::nullopt;
    LOCKSTEP_CHECK(!has_aux(found->epilogue) || aux_fits(product), "a stride that cuBLASLt takes");
    return PlayedProduct(product, *found);
  }

  [[nodiscard]] static std::size_t workspace_bytes() { return 96; }
  [[nodiscard]] const device::ProductForm& form() const { return form_; }
  [[nodiscard]] std::string name() const { return "played" + suffix_of(form_); }

  void run(const GpuStream& /*stream*/, const device::ProductOperands& operands, void* workspace) const {
    std::memset(workspace, 0x5A, workspace_bytes());  // the library's own
    for (std::int64_t column = 0; column < product_.n(); ++column) {
      for (std::int64_t row = 0; row < product_.m(); ++row) store(operands, row, column);
      if (form_.epilogue == device::Epilogue::sums_of_b) operands.b_sums[column] = sum_of_b(operands, column);
    }
  }

 private:
  PlayedProduct(const device::ColumnProduct& product, const device::ProductForm& form)
      : product_(product), form_(form) {}

  static float get(DType type, const void* data, std::int64_t i) {
    return device::with_element(type, [&]<class T>(T /*element*/) -> float { return static_cast<const T*>(data)[i]; });
  }
  static void set(DType type, void* data, std::int64_t i, float value) {
    device::with_element(type, [&]<class T>(T /*element*/) { static_cast<T*>(data)[i] = value; });
  }
  /// An element of a factor as the product reads it.
  [[nodiscard]] float factor(const device::ColumnMatrix& matrix, const void* data, std::int64_t row,
                             std::int64_t column) const {
    if (matrix.transposed) std::swap(row, column);
    return get(form_.types.factors, data, row + column * matrix.step());
  }
  [[nodiscard]] float sum_of_b(const device::ProductOperands& operands, std::int64_t column) const {
    float sum = 0;
    for (std::int64_t k = 0; k < product_.k(); ++k) sum += factor(product_.b, operands.b, k, column);
    return sum;
  }
  void store(const device::ProductOperands& operands, std::int64_t row, std::int64_t column) const {
    float sum = 0;
    for (std::int64_t k = 0; k < product_.k(); ++k) {
      sum += factor(product_.a, operands.a, row, k) * factor(product_.b, operands.b, k, column);
    }
    const DType type = form_.types.result;
    const std::int64_t in_aux = row + column * aux_stride(product_);
    if (adds_bias(form_.epilogue)) sum += get(form_.bias, operands.bias, row);
    if (writes_aux(form_.epilogue)) {
      set(type, operands.written_aux, in_aux, sum);
      sum = GeluForward<GeluTanh>::of(sum);
    }
    if (form_.epilogue == device::Epilogue::gelu_gradient) {
      sum = GeluGradient::of(sum, get(type, operands.aux, in_aux));
    }
    set(type, operands.d, row + column * product_.m(), sum);
  }

  device::ColumnProduct product_;
  device::ProductForm form_;
};

}  // namespace ops
}  // namespace lockstep
