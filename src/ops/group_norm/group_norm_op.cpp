// group_norm (Wu and He, "Group Normalization", ECCV 2018) and instance_norm (Ulyanov, Vedaldi and Lempitsky, "Instance
// Normalization", 2016), in which each channel is a group: y = (x - mean) / sqrt(variance + epsilon) * weight + bias,
// with the mean and the variance of a sample's group of channels. Saved: mean and 1 / sqrt(variance + epsilon) of each
// group.
//
// With z = (x - mean) * rstd and g = dy * weight: dx = rstd * (g - mean(g) - z * mean(g * z)).
// The parameters' gradients are sums over rows of channels (rows.hpp). A group is copied together before anything is
// added, so that sums over it are those of a row.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <string>

#include "core/vectorize.hpp"
#include "device/cpu/reduce.hpp"
#include "lockstep/error.hpp"
#include "ops/elementwise.hpp"
#include "ops/group_norm/group_sizes.hpp"
#include "ops/onnx_scope.hpp"
#include "ops/rows.hpp"

namespace lockstep::ops {

namespace {

LOCKSTEP_VECTORIZED float sum_of_row(const float* x, std::int64_t n) {
  return device::sum(x, n);
}

LOCKSTEP_VECTORIZED float product_of_rows(const float* x, const float* y, std::int64_t n) {
  return device::dot(x, y, n);
}

/// x[i] = (x[i] - mean) * scale
LOCKSTEP_VECTORIZED void center(float* x, std::int64_t n, float mean, float scale) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = (x[i] - mean) * scale;
}

LOCKSTEP_VECTORIZED void multiply_elements(const float* x, const float* y, float* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = x[i] * y[i];
}

/// dx = rstd * (g - mean(g) - z * mean(g * z)), over g.
LOCKSTEP_VECTORIZED void gradient_of_group(const float* z, float* g, std::int64_t n, float rstd, float mean_g,
                                           float mean_gz) {
  for (std::int64_t i = 0; i < n; ++i) g[i] = rstd * (g[i] - mean_g - z[i] * mean_gz);
}

class GroupNormCpu final : public Kernel {
 public:
  GroupNormCpu(const KernelRequest& request, const GroupSizes& sizes)
      : sizes_(sizes), epsilon_(request.attributes->number("epsilon")), affine_(!request.parameters.empty()) {}

  /// Two groups; or, of all rows, the terms of the weight's gradient, and what sums over rows take.
  std::size_t workspace_bytes() const override {
    const auto groups = (2 * sizes_.elements()) * sizeof(float);
    return std::max(groups, terms_bytes() + device::row_sums_bytes(sizes_.rows(), sizes_.channels()));
  }

  void forward(const ForwardCall& call) override {
    auto* const group = static_cast<float*>(call.workspace);
    const bool save = !call.saved.empty();
    const float n = sizes_.elements();
    for (std::int64_t number = 0; number < sizes_.samples * sizes_.groups; ++number) {
      gather(input(call), number, group);
      const float mean = sum_of_row(group, sizes_.elements()) / n;
      center(group, sizes_.elements(), mean, 1);
      const float variance = product_of_rows(group, group, sizes_.elements()) / n;
      const float rstd = 1.0F / std::sqrt(variance + epsilon_);
      if (save) {
        static_cast<float*>(call.saved[0])[number] = mean;
        static_cast<float*>(call.saved[1])[number] = rstd;
      }
      center(group, sizes_.elements(), 0, rstd);
      write(call, number, group);
    }
  }

  bool can_recompute() const override { return true; }
  void recompute(const ForwardCall& call) override { forward(call); }

  void backward(const BackwardCall& call) override {
    if (affine_) parameter_gradients(call);
    // Last, since it may be written over x or dy.
    if (input_gradient(call) != nullptr) input_gradients(call);
  }

 private:
  std::size_t terms_bytes() const { return (sizes_.rows() * sizes_.channels()) * sizeof(float); }

  void gather(const float* from, std::int64_t number, float* group) const {
    for (std::int64_t i = 0; i < sizes_.elements(); i += sizes_.width) {
      std::copy_n(from + sizes_.offset(number, i), sizes_.width, group + i);
    }
  }

  void write(const ForwardCall& call, std::int64_t number, const float* group) const {
    const std::int64_t first = number % sizes_.groups * sizes_.width;
    const float* weight = affine_ ? static_cast<const float*>(call.parameters[0]) + first : nullptr;
    const float* bias = affine_ ? static_cast<const float*>(call.parameters[1]) + first : nullptr;
    for (std::int64_t i = 0; i < sizes_.elements(); i += sizes_.width) {
      float* y = output(call) + sizes_.offset(number, i);
      for (std::int64_t c = 0; c < sizes_.width; ++c)
        y[c] = affine_ ? group[i + c] * weight[c] + bias[c] : group[i + c];
    }
  }

  void parameter_gradients(const BackwardCall& call) const {
    const auto* means = static_cast<const float*>(call.saved[0]);
    const auto* rstds = static_cast<const float*>(call.saved[1]);
    const float *x = input(call), *dy = output_gradient(call);
    auto* const terms = static_cast<float*>(call.workspace);
    void* const scratch = static_cast<std::byte*>(call.workspace) + terms_bytes();
    if (float* dw = call.parameter_gradients[0]; dw != nullptr) {
      for (std::int64_t row = 0; row < sizes_.rows(); ++row) {
        for (std::int64_t c = 0; c < sizes_.channels(); ++c) {
          const std::int64_t at = row * sizes_.channels() + c, group = sizes_.group_of(row, c);
          terms[at] = dy[at] * ((x[at] - means[group]) * rstds[group]);
        }
      }
      sum_rows(terms, sizes_.rows(), sizes_.channels(), dw, scratch);
    }
    if (float* db = call.parameter_gradients[1]; db != nullptr) {
      sum_rows(dy, sizes_.rows(), sizes_.channels(), db, scratch);
    }
  }

  void input_gradients(const BackwardCall& call) const {
    const std::int64_t size = sizes_.elements();
    auto *const z = static_cast<float*>(call.workspace), *const g = z + size;
    const float n = size;
    for (std::int64_t number = 0; number < sizes_.samples * sizes_.groups; ++number) {
      const float mean = static_cast<const float*>(call.saved[0])[number];
      const float rstd = static_cast<const float*>(call.saved[1])[number];
      gather(input(call), number, z);
      gather(output_gradient(call), number, g);
      center(z, size, mean, rstd);
      if (affine_) {
        const auto* weight = static_cast<const float*>(call.parameters[0]) + number % sizes_.groups * sizes_.width;
        for (std::int64_t i = 0; i < size; i += sizes_.width) multiply_elements(g + i, weight, g + i, sizes_.width);
      }
      const float mean_g = sum_of_row(g, size) / n, mean_gz = product_of_rows(g, z, size) / n;
      gradient_of_group(z, g, size, rstd, mean_g, mean_gz);
      for (std::int64_t i = 0; i < size; i += sizes_.width) {
        std::copy_n(g + i, sizes_.width, input_gradient(call) + sizes_.offset(number, i));
      }
    }
  }

  GroupSizes sizes_;
  float epsilon_;
  bool affine_;
};

Signature infer_groups(const std::string& op, const Attributes& attributes, const TensorSpec& input) {
  expect_rows(op, input);
  const std::int64_t channels = input.shape.back();
  const std::int64_t groups = attributes.has("groups") ? attributes.integer("groups") : channels;
  if (groups > channels || channels % groups != 0) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected groups that divide the {} channels, found {}", op, channels, groups));
  }
  std::int64_t elements = channels / groups;
  for (std::size_t i = 1; i + 1 < input.shape.size(); ++i) elements *= input.shape[i];
  if (elements < 2) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected groups of at least two elements, found one in each of the {} groups of {}",
                            op, groups, to_string(input.shape)));
  }
  Signature signature;
  signature.outputs = {input};
  if (attributes.boolean("affine")) {
    signature.parameters = {{"weight", {channels}, Initializer::ones(), false},
                            {"bias", {channels}, Initializer::zeros(), false}};
  }
  signature.saved.assign(2, {DType::f32, {input.shape[0], groups}});
  return signature;
}

OpDef norm_of_groups(const std::string& name, const std::string& doc, bool affine) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.attributes = {{.name = "epsilon",
                    .kind = AttributeKind::number,
                    .doc = "added to the variance",
                    .default_value = 1e-5,
                    .minimum = 0},
                   {.name = "affine",
                    .kind = AttributeKind::boolean,
                    .doc = "multiply each channel by a weight and add a bias",
                    .default_value = affine}};
  op.backward_reads = {.inputs = true, .outputs = false};
  op.in_place = {.over_gradient = true, .over_input = true};
  op.infer = [name](const Attributes& attributes, std::span<const TensorSpec> inputs) {
    return infer_groups(name, attributes, inputs[0]);
  };
  op.cost = elementwise_cost<8, 14>;
  op.kernels[DeviceKind::cpu] = [](const KernelRequest& request) {
    return std::make_unique<GroupNormCpu>(request, group_sizes(request));
  };
  return op;
}

/// ONNX's InstanceNormalization over groups as if they were channels, then the weight and bias of each channel.
void normalised(OnnxScope& scope, std::int64_t groups) {
  const Shape& shape = scope.input_shape();
  std::vector<std::int64_t> back{0, shape.back()}, by_channel{shape.back()};
  for (std::size_t i = 1; i + 1 < shape.size(); ++i) {
    back.push_back(shape[i]);
    by_channel.push_back(1);
  }
  const std::size_t count = groups;
  const std::string x = scope.reshape(scope.input(0, Layout::channels_first), {0, groups, -1});
  const std::string ones = scope.constant(std::vector<float>(count, 1), {groups});
  const std::string zeros = scope.constant(std::vector<float>(count, 0), {groups});
  const float epsilon = scope.attributes().number("epsilon");
  std::string y = scope.add("InstanceNormalization", {x, ones, zeros}, {{"epsilon", epsilon}});
  y = scope.reshape(y, back);
  if (scope.parameters() == 2) {
    y = scope.add("Mul", {y, scope.reshape(scope.parameter(0), by_channel)});
    y = scope.add("Add", {y, scope.reshape(scope.parameter(1), by_channel)});
  }
  scope.result(y, Layout::channels_first);
}

}  // namespace

GroupSizes group_sizes(const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  GroupSizes sizes{.samples = shape.front()};
  for (std::size_t i = 1; i + 1 < shape.size(); ++i) sizes.positions *= shape[i];
  sizes.groups = request.attributes->has("groups") ? request.attributes->integer("groups") : shape.back();
  sizes.width = shape.back() / sizes.groups;
  return sizes;
}

OpDef make_group_norm() {
  OpDef op = norm_of_groups("group_norm", "normalizes each sample's groups of channels", true);
  op.attributes.insert(op.attributes.begin(), {.name = "groups",
                                               .kind = AttributeKind::integer,
                                               .doc = "number of groups",
                                               .default_value = std::int64_t{32},
                                               .minimum = 1});
  op.shorthand = "groups";
  return op;
}

OpDef make_instance_norm() {
  return norm_of_groups("instance_norm", "normalizes each sample's channels", false);
}

void group_norm_to_onnx(OnnxScope& scope) {
  normalised(scope, scope.attributes().integer("groups"));
}

void instance_norm_to_onnx(OnnxScope& scope) {
  normalised(scope, scope.input_shape().back());
}

}  // namespace lockstep::ops
