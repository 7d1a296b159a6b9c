#include "cuda/interpreter/cudnn_attention.hpp"

#include <algorithm>
#include <stdexcept>

#include "cuda/interpreter/cudnn_attention_graph.hpp"
#include "cuda/interpreter/library_proposals.hpp"

namespace lockstep::ptx {

namespace {

using Step = AttentionOperation;

bool is_dense(const CudnnTensor& tensor) {
  std::int64_t stride = 1;
  for (std::size_t d = 4; d-- > 0; stride *= tensor.sizes[d]) {
    if (tensor.sizes[d] > 1 && tensor.strides[d] != stride) return false;
  }
  return true;
}

}  // namespace

AttentionProgram::AttentionProgram(const CudnnDescriptor& graph) {
  for (const auto& operation : attribute_of(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS).of) {
    read_attention(*operation, tensors_, operations_);
  }
  std::set<std::int64_t> made;
  for (const Step& one : operations_) {
    for (const std::int64_t uid : one.operands) {
      if (tensor(uid).is_virtual && !made.contains(uid)) cudnn_unknown("an operation that stands before its operands'");
      if (!tensor(uid).is_virtual && made.contains(uid)) in_between_.insert(uid);
    }
    check(one);
    made.insert(one.result);
  }
  for (const std::int64_t uid : in_between_) {
    if (tensor(uid).element != Element::fp32 || !is_dense(tensor(uid))) {
      cudnn_unknown("a result between operations that is in memory, and neither dense nor in fp32");
    }
  }
}

void AttentionProgram::check(const Step& operation) const {
  const auto& result = tensor(operation.result).sizes;
  const auto operand = [&](std::size_t i) -> const std::vector<std::int64_t>& {
    return tensor(operation.operands.at(i)).sizes;
  };
  if (operation.kind == Step::Kind::product) {
    const auto &a = operand(0), &b = operand(1);
    const bool fits =
        a[0] == b[0] && a[1] == b[1] && a[3] == b[2] && result == std::vector<std::int64_t>{a[0], a[1], a[2], b[3]};
    if (!fits) cudnn_unknown("a product of such sizes");
  } else if (operation.kind == Step::Kind::row_reduction) {
    const auto& of = operand(0);
    if (result != std::vector<std::int64_t>{of[0], of[1], of[2], 1}) cudnn_unknown("a reduction of other than rows");
  } else if (operation.kind == Step::Kind::pointwise) {
    for (std::size_t i = 0; i < operation.operands.size(); ++i) {
      for (std::size_t d = 0; d < 4; ++d) {
        if (operand(i)[d] != result[d] && operand(i)[d] != 1) cudnn_unknown("operands of such sizes, point by point");
      }
    }
  }
}

std::vector<Step> AttentionProgram::products() const {
  std::vector<Step> found;
  std::ranges::copy_if(operations_, std::back_inserter(found),
                       [](const Step& one) { return one.kind == Step::Kind::product; });
  return found;
}

// tests/cuda/cudnn_plans_test.cpp found cuDNN 9.19 to have no gradients in fp32; for the output in fp32 nothing is
// asked.
std::string AttentionProgram::refusal() const {
  const auto all = products();
  for (const Step& one : all) {
    for (const std::int64_t uid : one.operands) {
      if (!tensor(uid).is_virtual && tensor(uid).element == Element::fp32) return "attention in fp32";
    }
  }
  if (library_lacks("attention")) return "attention";
  constexpr std::size_t kOfTheOutput = 2;
  if (all.size() > kOfTheOutput && library_lacks("attention_gradients")) return "gradients of attention";
  return "";
}

// A gradient that is added up in memory is one to which blocks add as they come: there is no other engine for it.
std::vector<CudnnEngine> AttentionProgram::engines() const {
  const auto all = products();
  if (std::ranges::any_of(all, [&](const Step& one) { return is_in_between(one.result); })) {
    return {CudnnEngine::unordered};
  }
  return {CudnnEngine::unordered, CudnnEngine::greedy, CudnnEngine::in_parts, CudnnEngine::plain};
}

std::vector<cudnnBackendNumericalNote_t> AttentionProgram::notes(CudnnEngine engine) const {
  if (engine == CudnnEngine::unordered)
    return {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
  return {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
}

std::int64_t AttentionProgram::workspace_bytes(CudnnEngine engine) const {
  if (engine == CudnnEngine::greedy) return kGreedyBytes;
  if (engine != CudnnEngine::in_parts) return 0;
  std::int64_t most = 0;
  for (const Step& one : products()) {
    if (tensor(one.result).is_virtual) most = std::max(most, tensor(one.result).elements());
  }
  return most * static_cast<std::int64_t>(sizeof(float));
}

std::int64_t AttentionProgram::samples() const {
  return tensor(operations_.at(0).operands.at(0)).sizes[0];
}

// Under a causal mask half of each product is not computed.
LibraryCost AttentionProgram::cost() const {
  const bool causal =
      std::ranges::any_of(operations_, [](const Step& one) { return one.mode == CUDNN_POINTWISE_CMP_GE; });
  f64 work = 0;
  for (const Step& one : products()) {
    const auto terms = static_cast<f64>(tensor(one.operands[0]).sizes[3]);
    work += (causal ? 1 : 2) * static_cast<f64>(tensor(one.result).elements()) * terms;
  }
  return {"cuDNN's attention", work, bytes_in_memory()};
}

}  // namespace lockstep::ptx
