#include "ops/finite_difference.hpp"

namespace lockstep::ops {

namespace {

constexpr double kStep = 1e-5;  // the error of a central difference is of order 1e-10 here

std::vector<DoubleTensor> all_doubles(const std::vector<Tensor>& tensors) {
  std::vector<DoubleTensor> list;
  for (const auto& tensor : tensors) list.push_back(to_doubles(tensor));
  return list;
}

}  // namespace

Objective::Objective(const OpCases& cases, const Problem& problem)
    : cases_(cases),
      problem_(problem),
      inputs_(all_doubles(problem.inputs)),
      parameters_(all_doubles(problem.parameters)),
      states_(all_doubles(problem.states)),
      output_gradients_(all_doubles(problem.output_gradients)) {}

ReferenceResult Objective::outputs() const {
  return cases_.reference({problem_.attributes, problem_.mode, inputs_, parameters_, states_, problem_.step});
}

double Objective::value() const {
  const ReferenceResult result = outputs();
  double sum = 0;
  if (output_gradients_.empty()) {
    for (const double y : result.outputs.at(0).values) sum += y;
    return sum;
  }
  for (std::size_t i = 0; i < output_gradients_.size(); ++i) {
    if (problem_.signature.outputs[i].dtype != DType::f32) continue;
    for (std::size_t k = 0; k < output_gradients_[i].values.size(); ++k) {
      sum += output_gradients_[i].values[k] * result.outputs.at(i).values.at(k);
    }
  }
  return sum;
}

double Objective::slope(DoubleTensor& tensor, std::size_t element) {
  const double x = tensor.values.at(element);
  tensor.values[element] = x + kStep;
  const double above = value();
  tensor.values[element] = x - kStep;
  const double below = value();
  tensor.values[element] = x;
  return (above - below) / (2 * kStep);
}

double Objective::slope(DoubleTensor& tensor, const std::vector<double>& direction) {
  const std::vector<double> x = tensor.values;
  for (std::size_t i = 0; i < x.size(); ++i) tensor.values[i] = x[i] + kStep * direction.at(i);
  const double above = value();
  for (std::size_t i = 0; i < x.size(); ++i) tensor.values[i] = x[i] - kStep * direction.at(i);
  const double below = value();
  tensor.values = x;
  return (above - below) / (2 * kStep);
}

double Objective::input_slope(std::size_t tensor, std::size_t element) {
  return slope(inputs_.at(tensor), element);
}

double Objective::parameter_slope(std::size_t tensor, std::size_t element) {
  return slope(parameters_.at(tensor), element);
}

double Objective::input_slope(std::size_t tensor, const std::vector<double>& direction) {
  return slope(inputs_.at(tensor), direction);
}

double Objective::parameter_slope(std::size_t tensor, const std::vector<double>& direction) {
  return slope(parameters_.at(tensor), direction);
}

}  // namespace lockstep::ops
