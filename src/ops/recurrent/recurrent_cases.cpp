// References of lstm and gru: PyTorch's equations, a sample, a step and a unit at a time.
#include <cmath>

#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

/// A sample's states, and what its gates get.
class ReferenceLayer {
 public:
  ReferenceLayer(const ReferenceCall& call, std::size_t gates)
      : call_(call),
        in_(call.inputs[0].shape[2]),
        units_(call.attributes.integer("features")),
        h_(units_),
        c_(units_),
        of_x_(gates * units_),
        of_h_(gates * units_) {}

  void begin() {
    h_.assign(units_, 0);
    c_.assign(units_, 0);
  }
  /// weight_ih x + bias_ih and weight_hh h + bias_hh.
  void read(const double* x) {
    for (std::size_t i = 0; i < of_x_.size(); ++i) {
      of_x_[i] = bias(2, i);
      of_h_[i] = bias(3, i);
      for (std::size_t k = 0; k < in_; ++k) of_x_[i] += call_.parameters[0].values[i * in_ + k] * x[k];
      for (std::size_t k = 0; k < units_; ++k) of_h_[i] += call_.parameters[1].values[i * units_ + k] * h_[k];
    }
  }
  double x(std::size_t gate, std::size_t unit) const { return of_x_[gate * units_ + unit]; }
  double h(std::size_t gate, std::size_t unit) const { return of_h_[gate * units_ + unit]; }
  double both(std::size_t gate, std::size_t unit) const { return x(gate, unit) + h(gate, unit); }
  double& output(std::size_t unit) { return h_[unit]; }
  double& cell(std::size_t unit) { return c_[unit]; }
  std::size_t in() const { return in_; }
  std::size_t units() const { return units_; }

 private:
  double bias(std::size_t parameter, std::size_t i) const {
    return call_.parameters.size() > 2 ? call_.parameters[parameter].values[i] : 0;
  }
  const ReferenceCall& call_;
  std::size_t in_, units_;
  std::vector<double> h_, c_, of_x_, of_h_;
};

template <class Step>
ReferenceResult over_steps(const ReferenceCall& call, std::size_t gates, const Step& step) {
  ReferenceLayer layer(call, gates);
  const Shape& shape = call.inputs[0].shape;
  DoubleTensor y{{shape[0], shape[1], static_cast<std::int64_t>(layer.units())}, {}};
  for (std::int64_t row = 0; row < shape[0] * shape[1]; ++row) {
    if (row % shape[1] == 0) layer.begin();
    layer.read(call.inputs[0].values.data() + row * layer.in());
    for (std::size_t unit = 0; unit < layer.units(); ++unit) step(layer, unit);
    for (std::size_t unit = 0; unit < layer.units(); ++unit) y.values.push_back(layer.output(unit));
  }
  return {{y}, {}};
}

ReferenceResult lstm_reference(const ReferenceCall& call) {
  return over_steps(call, 4, [](ReferenceLayer& layer, std::size_t unit) {
    const double input = logistic(layer.both(0, unit)), forget = logistic(layer.both(1, unit));
    layer.cell(unit) = forget * layer.cell(unit) + input * std::tanh(layer.both(2, unit));
    layer.output(unit) = logistic(layer.both(3, unit)) * std::tanh(layer.cell(unit));
  });
}

ReferenceResult gru_reference(const ReferenceCall& call) {
  return over_steps(call, 3, [](ReferenceLayer& layer, std::size_t unit) {
    const double reset = logistic(layer.both(0, unit)), update = logistic(layer.both(1, unit));
    const double added = std::tanh(layer.x(2, unit) + reset * layer.h(2, unit));
    layer.output(unit) = (1 - update) * added + update * layer.output(unit);
  });
}

Attributes units_of(std::int64_t count, bool bias = true) {
  return Attributes({{"features", count}, {"bias", bias}});
}

std::vector<OpCase> recurrent_cases() {
  return {
      {.name = "odd", .attributes = units_of(5), .inputs = {{DType::f32, {2, 4, 3}}}},
      {.name = "more_than_lanes", .attributes = units_of(19), .inputs = {{DType::f32, {3, 3, 7}}}},
      {.name = "no_bias", .attributes = units_of(16, false), .inputs = {{DType::f32, {2, 5, 8}}}},
      {.name = "one_step", .attributes = units_of(6), .inputs = {{DType::f32, {3, 1, 4}}}},
      {.name = "one_unit", .attributes = units_of(1), .inputs = {{DType::f32, {2, 6, 1}}}},
      {.name = "many_steps", .attributes = units_of(4), .inputs = {{DType::f32, {2, 70, 3}}}},
      {.name = "empty", .attributes = units_of(4), .inputs = {{DType::f32, {0, 5, 3}}}},
      // Few steps: with weights as large as the cases have, a step multiplies differences between orders of sums.
      {.name = "speed",
       .attributes = units_of(128),
       .inputs = {{DType::f32, {16, 4, 128}}},
       .tolerance = 1e-4,
       .benchmark = true},
  };
}

}  // namespace

OpCases make_lstm_cases() {
  return {"lstm", lstm_reference, recurrent_cases(), CpuOrder::its_own};
}

OpCases make_gru_cases() {
  return {"gru", gru_reference, recurrent_cases(), CpuOrder::its_own};
}

}  // namespace lockstep::ops
