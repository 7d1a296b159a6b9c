#include "ops/layer_trial.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/low_precision.hpp"

namespace lockstep::ops {
namespace {

/// -1 or 1: their sums are exact in any order.
float coin(std::uint64_t& state) {
  state = state * 6364136223846793005U + 1442695040888963407U;
  return (state >> 63) != 0 ? 1.0F : -1.0F;
}

/// Memory of one tensor of a trial; whatever the layer leaves unwritten is NaN.
class TrialTensor {
 public:
  explicit TrialTensor(const TensorSpec& spec) : spec_(spec), bytes_(std::max<std::size_t>(spec.bytes(), 1)) {
    std::fill_n(bytes_.data(), bytes_.size(), std::byte{0xff});
  }
  TrialTensor(const TensorSpec& spec, std::uint64_t seed) : TrialTensor(spec) {
    std::vector<float> values(spec.elements());
    for (float& value : values) value = coin(seed);
    put(values);
  }
  [[nodiscard]] void* data() { return bytes_.data(); }
  /// Whether all of `exact` was written, and this has its bits, rounded to its type.
  [[nodiscard]] bool equals(TrialTensor& exact) {
    const auto* const values = static_cast<const float*>(exact.data());
    if (std::any_of(values, values + spec_.elements(), [](float value) { return std::isnan(value); })) return false;
    TrialTensor rounded(spec_);
    rounded.put({values, values + spec_.elements()});
    return std::memcmp(data(), rounded.data(), spec_.bytes()) == 0;
  }

 private:
  void put(const std::vector<float>& values) {
    if (spec_.dtype == DType::f32) {
      std::copy(values.begin(), values.end(), static_cast<float*>(data()));
    } else {
      downcast(spec_.dtype, values.data(), static_cast<std::uint16_t*>(data()), spec_.elements());
    }
  }
  TensorSpec spec_;
  AlignedBytes bytes_;
};

/// What a layer computes of a trial's tensors: y, dx, and the gradients of the parameters.
std::vector<TrialTensor> results_of(const TriedLayer& tried) {
  auto& [layer, request] = tried;
  TrialTensor x(request.inputs[0], 1), dy(request.outputs[0], 2);
  TrialTensor workspace({DType::f32, {static_cast<std::int64_t>(layer.workspace_bytes() / sizeof(float)) + 1}});
  std::vector<TrialTensor> parameters, results;
  results.emplace_back(request.outputs[0]);
  results.emplace_back(request.inputs[0]);
  std::vector<const void*> weights;
  std::vector<float*> gradients;
  results.reserve(2 + request.parameters.size());
  parameters.reserve(request.parameters.size());
  for (const TensorSpec& spec : request.parameters) {
    weights.push_back(parameters.emplace_back(spec, 3 + parameters.size()).data());
    gradients.push_back(static_cast<float*>(results.emplace_back(TensorSpec{DType::f32, spec.shape}).data()));
  }
  // A layer keeps its packed weight for this version of the parameters, which no other call has.
  const StepContext step{.parameters_version = std::numeric_limits<std::uint64_t>::max()};
  const void* const in = x.data();
  void* const out = results[0].data();
  layer.forward(
      {.inputs = {&in, 1}, .parameters = weights, .outputs = {&out, 1}, .workspace = workspace.data(), .step = &step});
  if (request.mode != Mode::training) {
    results.erase(results.begin() + 1, results.end());
    return results;
  }
  const void* const out_gradient = dy.data();
  void* const in_gradient = results[1].data();
  layer.backward({.inputs = {&in, 1},
                  .parameters = weights,
                  .output_gradients = {&out_gradient, 1},
                  .input_gradients = {&in_gradient, 1},
                  .parameter_gradients = gradients,
                  .workspace = workspace.data(),
                  .step = &step});
  return results;
}

}  // namespace

bool agrees(const TriedLayer& tried, const TriedLayer& exact) {
  std::vector<TrialTensor> expected = results_of(exact), found = results_of(tried);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i].equals(expected[i])) return false;
  }
  return true;
}

}  // namespace lockstep::ops
