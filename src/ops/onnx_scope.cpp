#include "ops/onnx_scope.hpp"

#include <fmt/format.h>

namespace lockstep::ops {

namespace {

/// From one order to the other.
std::vector<std::int64_t> permutation_to(Layout layout, std::size_t dimensions) {
  const auto last = static_cast<std::int64_t>(dimensions) - 1;
  std::vector<std::int64_t> order{0};
  if (layout == Layout::channels_first) order.push_back(last);
  for (std::int64_t i = 1; i < last; ++i) order.push_back(layout == Layout::channels_first ? i : i + 1);
  if (layout == Layout::channels_last) order.push_back(1);
  return order;
}

}  // namespace

Layout OnnxScope::layout() const {
  const bool is_last = out_.values.contains({node_.inputs.front(), Layout::channels_last});
  return is_last ? Layout::channels_last : Layout::channels_first;
}

std::string OnnxScope::input(std::size_t i, Layout layout) {
  const ValueId id = node_.inputs.at(i);
  const auto found = out_.values.find({id, layout});
  if (found != out_.values.end()) return found->second;
  const Layout other = layout == Layout::channels_last ? Layout::channels_first : Layout::channels_last;
  const std::string there = out_.values.at({id, other});
  const std::size_t dimensions = input_shape(i).size();
  const std::string name = dimensions < 3 ? there : transpose(there, permutation_to(layout, dimensions));
  return out_.values[{id, layout}] = name;
}

std::int64_t OnnxScope::axis_in(Layout layout, std::size_t axis, std::size_t dimensions) {
  const bool same = layout == Layout::channels_last || axis == 0 || dimensions < 3;
  return same ? axis : axis + 1 == dimensions ? 1 : axis + 1;
}

std::string OnnxScope::fresh_name() {
  return fmt::format("{}/{}", node_.name, names_++);  // an input, or a parameter, may be called like a node
}

std::string OnnxScope::add(const std::string& type, std::vector<std::string> inputs,
                           std::vector<OnnxAttribute> attributes) {
  return add_several(type, std::move(inputs), 1, std::move(attributes)).front();
}

std::vector<std::string> OnnxScope::add_several(const std::string& type, std::vector<std::string> inputs,
                                                std::size_t outputs, std::vector<OnnxAttribute> attributes) {
  const std::string name = fresh_name();
  std::vector<std::string> made;
  for (std::size_t i = 0; i < outputs; ++i) made.push_back(outputs == 1 ? name : fmt::format("{}:{}", name, i));
  out_.nodes.push_back({type, name, std::move(inputs), made, std::move(attributes), ""});
  return made;
}

std::string OnnxScope::integers(std::vector<std::int64_t> values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  out_.constants.push_back({fresh_name(), shape, std::move(values)});
  return out_.constants.back().name;
}

std::string OnnxScope::constant(std::vector<float> values, Shape shape) {
  out_.constants.push_back({fresh_name(), std::move(shape), std::move(values)});
  return out_.constants.back().name;
}

std::string OnnxScope::before_end(std::size_t index, std::int64_t positions) {
  std::vector<float> numbers;
  for (std::int64_t t = 0; t < positions; ++t) numbers.push_back(t);
  const std::string ends = reshape(lengths_as_floats(index), {0, 1});
  return add("Less", {constant(std::move(numbers), {positions}), ends});
}

std::string OnnxScope::with_padding(float value) {
  if (node_.inputs.size() < 2) return input();
  const Shape& shape = input_shape();
  std::vector<std::int64_t> like(shape.size(), 1);
  like[0] = 0;
  like[1] = shape[1];
  const std::string there = reshape(before_end(1, shape[1]), std::move(like));
  return add("Where", {there, input(), number(value)});
}

void OnnxScope::elementwise(const std::string& type, std::vector<OnnxAttribute> attributes) {
  const Layout order = layout();
  result(add(type, {input(0, order)}, std::move(attributes)), order);
}

}  // namespace lockstep::ops
