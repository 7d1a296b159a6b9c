// Attention as a kernel: operation by operation, each for all of its elements. Products of two-byte factors are added
// in fp32; what lies between operations has the type that the graph gives it.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "cuda/interpreter/cudnn_attention.hpp"
#include "cuda/interpreter/cudnn_values.hpp"

namespace lockstep::ptx {

namespace {

using Step = AttentionOperation;

constexpr std::int64_t kAttentionPart = 4;  // terms of a sum that are added up first

CudnnValues rounded(Element element, CudnnValues values) {
  if (element == Element::fp32) return values;
  std::vector<u8> bytes(values.size() * bytes_of(element));
  from_floats(element, values, bytes.data());
  return to_floats(element, bytes.data(), values.size());
}

float at_point(cudnnPointwiseMode_t mode, float a, float b, float c) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
      return a + b;
    case CUDNN_POINTWISE_BINARY_SELECT:
      return c != 0 ? a : b;
    case CUDNN_POINTWISE_CMP_GE:
      return a >= b ? 1.0F : 0.0F;
    case CUDNN_POINTWISE_DIV:
      return a / b;
    case CUDNN_POINTWISE_EXP:
      return std::exp(a);
    case CUDNN_POINTWISE_LOG:
      return std::log(a);
    case CUDNN_POINTWISE_MUL:
      return a * b;
    case CUDNN_POINTWISE_SUB:
      return a - b;
    default:
      return a;  // the identity
  }
}

/// On a stream.
class AttentionKernel final : public LibraryKernel {
 public:
  AttentionKernel(std::shared_ptr<const AttentionProgram> program, CudnnEngine engine, CudnnOperands operands)
      : program_(std::move(program)), engine_(engine), operands_(std::move(operands)) {}

  bool run(LibraryMemory& memory) override {
    LibraryOperands on(memory, kCudnnWho);
    std::map<std::int64_t, CudnnValues> values;  // of tensors that were read or made
    for (const auto& [uid, value] : operands_.values) values[uid] = {value};
    for (const Step& one : program_->operations()) {
      for (const std::int64_t uid : one.operands) {
        if (!values.contains(uid)) values[uid] = read_tensor(on, tensor(uid), operands_.memory.at(uid));
      }
      values[one.result] = keep(on, one, rounded(tensor(one.result).element, result_of(one, values)));
    }
    return true;
  }
  [[nodiscard]] LibraryCost cost() const override { return program_->cost(); }

 private:
  using All = std::map<std::int64_t, CudnnValues>;

  [[nodiscard]] const CudnnTensor& tensor(std::int64_t uid) const { return program_->tensor(uid); }
  [[nodiscard]] bool in_parts() const { return engine_ == CudnnEngine::in_parts; }

  /// The values as what follows reads them.
  CudnnValues keep(LibraryOperands& on, const Step& one, CudnnValues values) const {
    const bool is_virtual = tensor(one.result).is_virtual;
    const bool in_workspace = is_virtual && in_parts() && one.kind == Step::Kind::product;
    if (in_workspace || program_->is_in_between(one.result)) {
      void* const at = in_workspace ? operands_.workspace : operands_.memory.at(one.result);
      on.write_workspace(at, values);
      return on.read_workspace(at, values.size());
    }
    if (!is_virtual) write_tensor(on, tensor(one.result), operands_.memory.at(one.result), values);
    return values;
  }

  [[nodiscard]] CudnnValues result_of(const Step& one, const All& all) const {
    switch (one.kind) {
      case Step::Kind::product:
        return product(one, all);
      case Step::Kind::row_reduction:
        return reduction(one, all);
      case Step::Kind::reshape:
        return turned(one, all);
      default:
        return one.mode == CUDNN_POINTWISE_GEN_INDEX ? positions(one) : points(one, all);
    }
  }

  /// Tensor cores take both factors in two bytes.
  [[nodiscard]] CudnnValues factor(const All& all, std::int64_t uid, std::int64_t other) const {
    const Element own = tensor(uid).element;
    return rounded(own == Element::fp32 ? tensor(other).element : own, all.at(uid));
  }

  [[nodiscard]] CudnnValues product(const Step& one, const All& all) const {
    const CudnnValues a = factor(all, one.operands[0], one.operands[1]),
                      b = factor(all, one.operands[1], one.operands[0]);
    const CudnnTensor& result = tensor(one.result);
    const std::int64_t rows = result.sizes[2], columns = result.sizes[3], terms = tensor(one.operands[0]).sizes[3];
    CudnnValues sums;
    sums.reserve(cudnn_size(result.elements()));
    for (std::int64_t matrix = 0; matrix < result.sizes[0] * result.sizes[1]; ++matrix) {
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
          const float* const row = a.data() + (matrix * rows + i) * terms;
          const float* const column = b.data() + matrix * terms * columns + j;
          sums.push_back(sum(terms, [&](std::int64_t k) { return row[k] * column[k * columns]; }));
        }
      }
    }
    return sums;
  }

  template <class Term>
  [[nodiscard]] float sum(std::int64_t terms, const Term& term) const {
    CudnnSum sum(in_parts());
    for (std::int64_t k = 0; k < terms; ++k) {
      sum.add(term(k));
      if ((k + 1) % kAttentionPart == 0) sum.end_part();
    }
    sum.end_part();
    return sum.value();
  }

  [[nodiscard]] CudnnValues reduction(const Step& one, const All& all) const {
    const CudnnValues& of = all.at(one.operands[0]);
    const std::int64_t columns = tensor(one.operands[0]).sizes[3];
    CudnnValues rows;
    for (std::size_t first = 0; first < of.size(); first += cudnn_size(columns)) {
      const float* const row = of.data() + first;
      rows.push_back(one.reduction == CUDNN_REDUCE_TENSOR_MAX ? *std::max_element(row, row + columns)
                                                              : sum(columns, [&](std::int64_t k) { return row[k]; }));
    }
    return rows;
  }

  [[nodiscard]] CudnnValues turned(const Step& one, const All& all) const {
    const CudnnValues& from = all.at(one.operands[0]);
    const auto& sizes = tensor(one.operands[0]).sizes;
    const std::array<std::int64_t, 4> steps = {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
    CudnnValues to(from.size());
    for (std::size_t i = 0; i < to.size(); ++i) {
      auto rest = static_cast<std::int64_t>(i);
      std::int64_t place = 0;
      for (std::size_t d = 4; d-- > 0;) {
        place += rest % tensor(one.result).sizes[d] * steps[one.axes[d]];
        rest /= tensor(one.result).sizes[d];
      }
      to[i] = from[cudnn_size(place)];
    }
    return to;
  }

  [[nodiscard]] CudnnValues positions(const Step& one) const {
    const CudnnTensor& result = tensor(one.result);
    std::int64_t step = 1;
    for (std::size_t d = one.axis + 1; d < 4; ++d) step *= result.sizes[d];
    CudnnValues values(cudnn_size(result.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(static_cast<std::int64_t>(i) / step % result.sizes[one.axis]);
    }
    return values;
  }

  [[nodiscard]] CudnnValues points(const Step& one, const All& all) const {
    const CudnnTensor& result = tensor(one.result);
    CudnnValues values(cudnn_size(result.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::array<float, 3> at{};
      for (std::size_t o = 0; o < one.operands.size(); ++o) {
        at.at(o) = all.at(one.operands[o])[place_of_broadcast(i, result, tensor(one.operands[o]))];
      }
      values[i] = at_point(one.mode, at[0], at[1], at[2]);
    }
    return values;
  }

  std::shared_ptr<const AttentionProgram> program_;
  CudnnEngine engine_;
  CudnnOperands operands_;
};

}  // namespace

std::shared_ptr<LibraryKernel> AttentionProgram::kernel(CudnnEngine engine, CudnnOperands operands) const {
  return std::make_shared<AttentionKernel>(std::static_pointer_cast<const AttentionProgram>(shared_from_this()), engine,
                                           std::move(operands));
}

}  // namespace lockstep::ptx
