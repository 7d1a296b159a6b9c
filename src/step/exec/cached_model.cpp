#include "step/exec/cached_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "lockstep/error.hpp"
#include "lockstep/op.hpp"
#include "ops/rope/rope_at.hpp"

namespace lockstep::exec {

namespace {

using Bytes = AlignedBytes;

/// Ops that compute a position from that position alone, but for those of which something is known here.
bool is_of_one_position(const std::string& op) {
  static const std::set<std::string> kOps = {"embedding",  "linear", "layer_norm", "rms_norm",  "add",     "mul",
                                             "sub",        "scale",  "dropout",    "relu",      "gelu",    "silu",
                                             "leaky_relu", "elu",    "softplus",   "hardswish", "sigmoid", "tanh"};
  return kOps.contains(op);
}

bool is_known(const std::string& op) {
  return op == "attention" || op == "rope" || op == "position_embedding" || is_of_one_position(op);
}

bool is_float32(const Graph& graph, const Node& node) {
  const auto all = [&](const std::vector<ValueId>& ids) {
    return std::all_of(ids.begin(), ids.end(), [&](ValueId id) { return graph.at(id).spec.dtype == DType::f32; });
  };
  return node.compute_type == DType::f32 && !node.fast_float32 && all(node.parameters) && all(node.outputs);
}

/// [1, T, ...] with another number of positions.
TensorSpec with_positions(TensorSpec spec, std::int64_t positions) {
  spec.shape.at(1) = positions;
  return spec;
}

}  // namespace

std::string CachedModel::refusal(const Graph& graph) {
  const Shape& prediction = graph.at(graph.output).spec.shape;
  if (graph.inputs.size() != 1 || prediction.size() != 3 || prediction[0] != 1) return "its prediction is not by token";
  const std::int64_t context = prediction[1];
  for (const Node& node : graph.nodes) {
    if (!is_known(node.op->name)) return fmt::format("op '{}' may use other positions", node.op->name);
    if (!is_float32(graph, node)) return fmt::format("layer '{}' is not computed in float32", node.name);
    if (node.op->name == "attention" && !node.attributes.boolean("causal")) {
      return fmt::format("layer '{}' is not causal", node.name);
    }
    auto values = node.inputs;
    values.insert(values.end(), node.outputs.begin(), node.outputs.end());
    for (const ValueId id : values) {
      const Shape& shape = graph.at(id).spec.shape;
      if (shape.size() < 2 || shape[0] != 1 || shape[1] != context) {
        return fmt::format("layer '{}' has tensors that are not by token", node.name);
      }
    }
  }
  return "";
}

/// The kernels and tensors for some number of positions at once.
struct CachedPass {
  std::int64_t rows = 0;
  std::vector<std::unique_ptr<Kernel>> kernels;  ///< by node; null: attention, rope
  std::vector<Bytes> values;                     ///< by value; empty: parameters
};

/// Of one attention: [T, kv_width] each.
struct KeysAndValues {
  std::vector<float> keys, values;
  std::vector<float> queries;  ///< of a pass, where they lie between keys and values
};

struct CachedModel::Impl {
  Impl(const Graph& model, const ModelValues& model_values) : graph(model), values(model_values) {
    for (std::size_t i = 0; i < graph.parameters.size(); ++i) parameter_at[graph.parameters[i]] = i;
    context = graph.at(graph.output).spec.shape[1];
    caches.resize(graph.nodes.size());
    for (const Node& node : graph.nodes) {
      if (node.op->name == "attention") reserve(caches[&node - graph.nodes.data()], node);
    }
    one = make_pass(1);
  }

  void reserve(KeysAndValues& cache, const Node& node) const {
    const std::size_t elements = context * kv_width(node);
    cache.keys.resize(elements);
    cache.values.resize(elements);
  }

  std::int64_t width(const Node& node) const { return graph.at(node.outputs[0]).spec.shape[2]; }
  std::int64_t kv_width(const Node& node) const {
    const std::int64_t first = graph.at(node.inputs[0]).spec.shape[2];
    return node.inputs.size() == 1 ? (first - width(node)) / 2 : graph.at(node.inputs[1]).spec.shape[2];
  }

  CachedPass make_pass(std::int64_t rows) const {
    CachedPass pass;
    pass.rows = rows;
    pass.values.resize(graph.values.size());
    const auto hold = [&](ValueId id) { pass.values[id] = Bytes(with_positions(graph.at(id).spec, rows).bytes()); };
    hold(graph.inputs[0]);
    for (const Node& node : graph.nodes) {
      for (const ValueId id : node.outputs) hold(id);
      pass.kernels.push_back(nullptr);
      if (node.op->name != "attention" && node.op->name != "rope") make_kernel(node, pass);
    }
    return pass;
  }

  void make_kernel(const Node& node, CachedPass& pass) const {
    KernelRequest request;
    request.node = node.name;
    request.attributes = &node.attributes;
    request.mode = Mode::inference;
    for (const ValueId id : node.inputs) request.inputs.push_back(with_positions(graph.at(id).spec, pass.rows));
    for (const ValueId id : node.outputs) request.outputs.push_back(with_positions(graph.at(id).spec, pass.rows));
    for (const ValueId id : node.parameters) request.parameters.push_back(graph.at(id).spec);
    request.keeps_weights = pass.rows == 1;  // a prompt is computed once
    pass.kernels.back() = node.op->kernels.at(DeviceKind::cpu)(request);
  }

  void run(CachedPass& pass, std::int64_t position) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      if (node.op->name == "attention") {
        attend(node, caches[i], pass, position);
      } else if (node.op->name == "rope") {
        rotate(node, pass, position);
      } else {
        forward(node, *pass.kernels[i], pass, position);
      }
    }
  }

  template <class T = float>
  [[nodiscard]] static T* at(CachedPass& pass, ValueId id) {
    return reinterpret_cast<T*>(pass.values[id].data());
  }

  void forward(const Node& node, Kernel& kernel, CachedPass& pass, std::int64_t position) {
    std::vector<const void*> inputs, parameters;
    std::vector<void*> outputs;
    for (const ValueId id : node.inputs) inputs.push_back(at(pass, id));
    for (const ValueId id : node.outputs) outputs.push_back(at(pass, id));
    for (const ValueId id : node.parameters) parameters.push_back(values.parameters.at(parameter_at.at(id)).data());
    if (node.op->name == "position_embedding" && !(node.attributes.has("same") && node.attributes.boolean("same"))) {
      parameters[0] = static_cast<const float*>(parameters[0]) + position * width(node);
    }
    call(kernel, {.inputs = inputs, .parameters = parameters, .outputs = outputs});
  }

  void call(Kernel& kernel, ForwardCall call) {
    if (workspace.size() < kernel.workspace_bytes()) workspace = Bytes(kernel.workspace_bytes());
    call.workspace = workspace.data();
    call.step = &step;
    kernel.forward(call);
  }

  void rotate(const Node& node, CachedPass& pass, std::int64_t position) const {
    const std::int64_t heads = node.attributes.integer("heads"), elements = width(node);
    for (std::int64_t row = 0; row < pass.rows; ++row) {
      ops::rope_at({node.attributes.number("base"), position + row, heads, elements / heads / 2},
                   at(pass, node.inputs[0]) + row * elements, at(pass, node.outputs[0]) + row * elements);
    }
  }

  void attend(const Node& node, KeysAndValues& cache, CachedPass& pass, std::int64_t position) {
    const std::int64_t q = width(node), kv = kv_width(node), seen = position + pass.rows;
    float *keys = cache.keys.data() + position * kv, *held = cache.values.data() + position * kv;
    const float* queries = at(pass, node.inputs[0]);
    if (node.inputs.size() == 1) {
      cache.queries.resize(pass.rows * q);
      for (std::int64_t row = 0; row < pass.rows; ++row) {
        const float* from = queries + row * (q + 2 * kv);
        std::copy_n(from, q, cache.queries.data() + row * q);
        std::copy_n(from + q, kv, keys + row * kv);
        std::copy_n(from + q + kv, kv, held + row * kv);
      }
      queries = cache.queries.data();
    } else {
      std::copy_n(at(pass, node.inputs[1]), pass.rows * kv, keys);
      std::copy_n(at(pass, node.inputs[2]), pass.rows * kv, held);
    }
    KernelRequest request;
    request.node = node.name;
    request.attributes = &node.attributes;
    request.mode = Mode::inference;
    request.inputs = {{DType::f32, {1, pass.rows, q}}, {DType::f32, {1, seen, kv}}, {DType::f32, {1, seen, kv}}};
    const auto kernel = node.op->kernels.at(DeviceKind::cpu)(request);
    const std::array<const void*, 3> inputs = {queries, cache.keys.data(), cache.values.data()};
    const std::array<void*, 1> outputs = {at(pass, node.outputs[0])};
    call(*kernel, {.inputs = inputs, .outputs = outputs});
  }

  const Graph& graph;
  const ModelValues values;
  std::map<ValueId, std::size_t> parameter_at;
  std::int64_t context = 0, positions = 0;
  std::vector<KeysAndValues> caches;  ///< by node; empty: no attention
  CachedPass one;
  CachedPass several;  ///< of the last append() of several tokens, whose prediction may still be read
  Bytes workspace;
  StepContext step;
};

CachedModel::CachedModel(const Graph& graph, const ModelValues& values)
    : impl_(std::make_unique<Impl>(graph, values)) {}

CachedModel::~CachedModel() = default;

std::int64_t CachedModel::context() const {
  return impl_->context;
}
std::int64_t CachedModel::positions() const {
  return impl_->positions;
}

std::span<const float> CachedModel::append(std::span<const std::int32_t> tokens) {
  Impl& m = *impl_;
  const std::int64_t rows = std::ssize(tokens);
  LOCKSTEP_CHECK(rows > 0 && m.positions + rows <= m.context, "tokens that fit into the context");
  // Several at once only at the beginning, where blocks of queries lie as in a whole window.
  if (rows > 1 && m.positions > 0) {
    for (std::int64_t i = 0; i + 1 < rows; ++i) (void)append(tokens.subspan(i, 1));
    return append(tokens.last(1));
  }
  if (rows > 1) m.several = m.make_pass(rows);
  CachedPass& pass = rows > 1 ? m.several : m.one;
  std::copy(tokens.begin(), tokens.end(), Impl::at<std::int32_t>(pass, m.graph.inputs[0]));
  m.run(pass, m.positions);
  m.positions += rows;
  const std::size_t vocabulary = m.width(m.graph.nodes[m.graph.at(m.graph.output).producer]);
  return {Impl::at(pass, m.graph.output) + (rows - 1) * vocabulary, vocabulary};
}

}  // namespace lockstep::exec
