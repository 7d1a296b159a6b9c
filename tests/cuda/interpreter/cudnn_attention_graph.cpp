#include "cuda/interpreter/cudnn_attention_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::ptx {

namespace {

using Step = AttentionOperation;
using Sizes4 = std::vector<std::int64_t>;

std::size_t operands_of(cudnnPointwiseMode_t mode) {
  switch (mode) {
    case CUDNN_POINTWISE_EXP:
    case CUDNN_POINTWISE_GEN_INDEX:
    case CUDNN_POINTWISE_IDENTITY:
    case CUDNN_POINTWISE_LOG:
      return 1;
    case CUDNN_POINTWISE_ADD:
    case CUDNN_POINTWISE_CMP_GE:
    case CUDNN_POINTWISE_DIV:
    case CUDNN_POINTWISE_MUL:
    case CUDNN_POINTWISE_SUB:
      return 2;
    case CUDNN_POINTWISE_BINARY_SELECT:
      return 3;
    default:
      cudnn_unknown(fmt::format("pointwise mode {}", static_cast<int>(mode)));
  }
}

/// Which axis of `from` each of `to`'s is: a reshape gives the same elements of memory other axes.
std::array<std::size_t, 4> reshaped_axes(const CudnnTensor& from, const CudnnTensor& to) {
  std::array<std::size_t, 4> axes{};
  std::array<bool, 4> taken{};
  for (std::size_t d = 0; d < axes.size(); ++d) {
    std::size_t same = 0;
    const auto is_same = [&] {
      return !taken[same] && from.sizes[same] == to.sizes[d] &&
             (from.strides[same] == to.strides[d] || to.sizes[d] == 1);
    };
    while (same < taken.size() && !is_same()) ++same;
    if (same == taken.size()) cudnn_unknown("a reshape that does more than to exchange axes");
    taken[same] = true;
    axes[d] = same;
  }
  return axes;
}

class AttentionReader {
 public:
  AttentionReader(CudnnProgram::Tensors& tensors, std::vector<Step>& steps) : tensors_(tensors), steps_(steps) {}

  void operation(const CudnnDescriptor& of) {
    switch (of.type) {
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        return product(of);
      case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return pointwise(of);
      case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        return reduction(of);
      case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        return reshape(tensor(of, CUDNN_ATTR_OPERATION_RESHAPE_XDESC), tensor(of, CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
      case CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR:
        return attention(of);
      default:
        cudnn_unknown(fmt::format("operation {}", static_cast<int>(of.type)));
    }
  }

 private:
  std::int64_t tensor(const CudnnDescriptor& of, cudnnBackendAttributeName_t name) {
    return add_tensor(tensors_, of, name);
  }
  void without(const CudnnDescriptor& of, std::initializer_list<cudnnBackendAttributeName_t> names, const char* what) {
    if (std::ranges::any_of(names, [&](auto name) { return of.attributes.contains(name); })) cudnn_unknown(what);
  }

  void product(const CudnnDescriptor& of) {
    without(of,
            {CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC,
             CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC},
            "a product whose sizes are in tensors");
    const auto how = descriptor_of(of, CUDNN_ATTR_OPERATION_MATMUL_DESC);
    if (value_of<cudnnDataType_t>(*how, CUDNN_ATTR_MATMUL_COMP_TYPE) != CUDNN_DATA_FLOAT) {
      cudnn_unknown("a product that isn't added in fp32");
    }
    multiply(tensor(of, CUDNN_ATTR_OPERATION_MATMUL_ADESC), tensor(of, CUDNN_ATTR_OPERATION_MATMUL_BDESC),
             tensor(of, CUDNN_ATTR_OPERATION_MATMUL_CDESC));
  }

  void pointwise(const CudnnDescriptor& of) {
    const auto how = descriptor_of(of, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const auto mode = value_of<cudnnPointwiseMode_t>(*how, CUDNN_ATTR_POINTWISE_MODE);
    const auto type = value_of<cudnnDataType_t>(*how, CUDNN_ATTR_POINTWISE_MATH_PREC);
    if (type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_BOOLEAN) {
      cudnn_unknown("what is computed point by point in another type than fp32");
    }
    if (value_of(of, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, 1.0F) != 1 ||
        value_of(of, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, 1.0F) != 1) {
      cudnn_unknown("what is computed point by point of scaled operands");
    }
    constexpr std::array kNames = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                   CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
    Step step{.kind = Step::Kind::pointwise, .result = tensor(of, CUDNN_ATTR_OPERATION_POINTWISE_YDESC), .mode = mode};
    for (std::size_t i = 0; i < operands_of(mode); ++i) step.operands.push_back(tensor(of, kNames.at(i)));
    if (mode == CUDNN_POINTWISE_GEN_INDEX) {
      step.axis = static_cast<std::size_t>(value_of<std::int64_t>(*how, CUDNN_ATTR_POINTWISE_AXIS));
      if (step.axis >= 4) cudnn_unknown("an axis beyond the fourth");
    }
    steps_.push_back(std::move(step));
  }

  void reduction(const CudnnDescriptor& of) {
    const auto how = descriptor_of(of, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    const auto what = value_of<cudnnReduceTensorOp_t>(*how, CUDNN_ATTR_REDUCTION_OPERATOR);
    if (what != CUDNN_REDUCE_TENSOR_MAX && what != CUDNN_REDUCE_TENSOR_ADD) {
      cudnn_unknown(fmt::format("reduction {}", static_cast<int>(what)));
    }
    if (value_of<cudnnDataType_t>(*how, CUDNN_ATTR_REDUCTION_COMP_TYPE) != CUDNN_DATA_FLOAT) {
      cudnn_unknown("a reduction in another type than fp32");
    }
    reduce(what, tensor(of, CUDNN_ATTR_OPERATION_REDUCTION_XDESC), tensor(of, CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
  }

  /// softmax(scale * q k^T) v; of each row's exponentials, the logarithm of the sum.
  void attention(const CudnnDescriptor& of) {
    without(of,
            {CUDNN_ATTR_OPERATION_SDPA_FWD_BLOCK_MASK_DESC, CUDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_KDESC,
             CUDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_VDESC, CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC,
             CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC},
            "an attention with masks, pages or lengths");
    const std::int64_t q = tensor(of, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC),
                       k = tensor(of, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC),
                       v = tensor(of, CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC),
                       out = tensor(of, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC);
    const CudnnTensor &queries = tensors_.at(q), &keys = tensors_.at(k);
    const Sizes4 of_scores = {queries.sizes[0], queries.sizes[1], queries.sizes[2], keys.sizes[2]},
                 of_rows = {queries.sizes[0], queries.sizes[1], queries.sizes[2], 1};
    const auto turned = [](Sizes4 values) {
      std::swap(values[2], values[3]);
      return values;
    };
    const std::int64_t keys_in_columns = between(keys.element, turned(keys.sizes), turned(keys.strides));
    reshape(k, keys_in_columns);
    std::int64_t scores = between(Element::fp32, of_scores);
    multiply(q, keys_in_columns, scores);
    if (of.attributes.contains(CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC)) {
      scores = point(CUDNN_POINTWISE_MUL, {scores, tensor(of, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC)}, of_scores);
    }
    const std::int64_t largest = between(Element::fp32, of_rows), sum = between(Element::fp32, of_rows);
    reduce(CUDNN_REDUCE_TENSOR_MAX, scores, largest);
    const std::int64_t less = point(CUDNN_POINTWISE_SUB, {scores, largest}, of_scores),
                       exponentials = point(CUDNN_POINTWISE_EXP, {less}, of_scores);
    reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, sum);
    if (of.attributes.contains(CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC)) {
      const std::int64_t logarithm = point(CUDNN_POINTWISE_LOG, {sum}, of_rows);
      steps_.push_back({.operands = {largest, logarithm},
                        .result = tensor(of, CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC),
                        .mode = CUDNN_POINTWISE_ADD});
    }
    const std::int64_t weights = between(queries.element, of_scores);
    steps_.push_back({.operands = {exponentials, sum}, .result = weights, .mode = CUDNN_POINTWISE_DIV});
    multiply(weights, v, out);
  }

  void multiply(std::int64_t first, std::int64_t second, std::int64_t result) {
    steps_.push_back({.kind = Step::Kind::product, .operands = {first, second}, .result = result});
  }
  void reduce(cudnnReduceTensorOp_t what, std::int64_t of, std::int64_t to) {
    steps_.push_back({.kind = Step::Kind::row_reduction, .operands = {of}, .result = to, .reduction = what});
  }
  void reshape(std::int64_t from, std::int64_t to) {
    steps_.push_back({.kind = Step::Kind::reshape,
                      .operands = {from},
                      .result = to,
                      .axes = reshaped_axes(tensors_.at(from), tensors_.at(to))});
  }
  std::int64_t point(cudnnPointwiseMode_t mode, std::vector<std::int64_t> operands, const Sizes4& sizes) {
    const std::int64_t result = between(Element::fp32, sizes);
    steps_.push_back({.operands = std::move(operands), .result = result, .mode = mode});
    return result;
  }
  /// A tensor in no memory. Its number is none of the caller's, which are positive.
  std::int64_t between(Element element, Sizes4 sizes, Sizes4 strides = {}) {
    if (strides.empty()) strides = {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
    const std::int64_t uid = -1 - static_cast<std::int64_t>(tensors_.size());
    tensors_[uid] = {
        .uid = uid, .element = element, .is_virtual = true, .sizes = std::move(sizes), .strides = std::move(strides)};
    return uid;
  }

  CudnnProgram::Tensors& tensors_;
  std::vector<Step>& steps_;
};

}  // namespace

void read_attention(const CudnnDescriptor& operation, CudnnProgram::Tensors& tensors,
                    std::vector<AttentionOperation>& to) {
  AttentionReader(tensors, to).operation(operation);
}

}  // namespace lockstep::ptx
