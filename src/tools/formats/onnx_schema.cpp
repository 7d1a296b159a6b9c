#include "tools/formats/onnx_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace lockstep::formats {

namespace {

using Integers = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;

constexpr char kPort = '\1';  // before the name of a port; no layer is called so

/// Adds nodes and constants with names of their own.
class Lines {
 public:
  Lines(std::string what, ops::OnnxNodes& made) : what_(std::move(what)), made_(made) {}

  std::string add(const std::string& type, Texts inputs, std::vector<ops::OnnxAttribute> attributes = {},
                  const std::string& domain = "") {
    std::string name = fresh_name();
    made_.nodes.push_back({type, name, std::move(inputs), {name}, std::move(attributes), domain});
    return name;
  }
  template <class Values>
  std::string constant(Values values, Shape shape) {
    made_.constants.push_back({fresh_name(), std::move(shape), std::move(values)});
    return made_.constants.back().name;
  }
  template <class Values>
  std::string list(Values values) {
    const Shape shape{std::ssize(values)};
    return constant(std::move(values), shape);
  }
  std::string number(float value) { return constant(std::vector<float>{value}, {}); }
  std::string as(OnnxPort::Type type, const std::string& tensor) {
    return add("Cast", {tensor}, {{"to", static_cast<std::int64_t>(type)}});
  }
  /// 0 stands for the batch.
  std::string reshape(const std::string& tensor, Integers shape) {
    return add("Reshape", {tensor, list(std::move(shape))});
  }
  std::string joined(Texts parts, std::int64_t axis = 1) {
    return parts.size() == 1 ? parts[0] : add("Concat", std::move(parts), {{"axis", axis}});
  }
  std::string scaled(const std::string& tensor, const ExportedInput& by) {
    return by.factor.empty() ? tensor : add("Add", {add("Mul", {tensor, list(by.factor)}), list(by.shift)});
  }
  /// An output of the graph.
  OnnxPort give(const std::string& tensor, OnnxPort port) {
    made_.nodes.push_back({"Identity", fresh_name(), {tensor}, {port_name(port.name)}, {}, ""});
    return port;
  }
  /// What the last node is called in onnxruntime's messages.
  void call_last(const std::string& name) { made_.nodes.back().name = name; }

 private:
  std::string fresh_name() { return fmt::format("<{}>/{}", what_, names_++); }

  std::string what_;
  ops::OnnxNodes& made_;
  int names_ = 0;
};

OnnxPort::Type type_of(DType dtype) {
  return dtype == DType::i32 ? OnnxPort::Type::i32 : OnnxPort::Type::f32;
}

Shape without_batch(const Shape& shape) {
  return {shape.begin() + 1, shape.end()};
}

/// [b, 1] numbers, or [b, rows, 1] of a window (`inner` is the last axis), NaN where one is missing, and what says so.
std::string number_column(const Column& column, const std::string& name, std::int64_t inner, ops::OnnxNodes& made) {
  Lines lines("column " + name, made);
  const std::string value = port_name(name);
  const auto f64 = OnnxPort::Type::f64;
  return column.missing ? lines.joined({value, lines.as(f64, lines.add("IsNaN", {value}))}, inner) : value;
}

/// [b, elements], or [b, rows, elements], of which one is 1. Category i is row i; what is missing comes behind, where
/// there is an element for it; a value that is neither stops the run, as it is refused by `predict`, or has no element.
std::string category_column(std::size_t number, const std::string& name, const ExportedModel& model,
                            ops::OnnxNodes& made) {
  const Column& column = model.columns[number];
  Lines lines("column " + name, made);
  const std::int64_t window = model.window_rows;
  const std::int64_t categories = std::ssize(column.categories);
  Texts keys = column.categories;
  for (const std::string& mark : model.missing) {
    if (std::find(keys.begin(), keys.end(), mark) == keys.end()) keys.push_back(mark);
  }
  Integers rows(keys.size(), categories), known(categories + 1);
  std::iota(rows.begin(), rows.begin() + categories, 0);
  for (std::int64_t i = 0; i < categories; ++i) {
    for (const auto& [spelling, category] : model.spellings.at(number)) {
      if (category != column.categories[i]) continue;
      keys.push_back(spelling);
      rows.push_back(i);
    }
  }
  std::iota(known.begin(), known.end(), 0);
  std::string row = lines.add(
      "LabelEncoder", {port_name(name)},
      {{"keys_strings", std::move(keys)}, {"values_int64s", std::move(rows)}, {"default_int64", categories + 1}},
      "ai.onnx.ml");
  if (!model.ignores_unknown) {
    row = lines.add("Gather", {lines.list(known), row});
    lines.call_last(fmt::format("column '{}': a value that is no category of the training set", name));
  }
  const std::string depth = lines.constant(Integers{column.elements()}, {}),
                    values = lines.list(std::vector<float>{0, 1});
  const Integers shape = window > 0 ? Integers{0, window, column.elements()} : Integers{0, column.elements()};
  return lines.as(OnnxPort::Type::f64, lines.reshape(lines.add("OneHot", {row, depth, values}), shape));
}

/// `whole`: the port that stands for all columns, where these are not known.
std::string table_input(const ExportedModel& model, const OnnxPort& whole, std::vector<OnnxPort>& ports,
                        ops::OnnxNodes& made) {
  Texts parts;
  if (model.columns.empty()) {
    ports.push_back({whole.name, OnnxPort::Type::f64, whole.shape});
    parts.push_back(port_name(whole.name));
  }
  for (std::size_t c = 0; c < model.columns.size(); ++c) {
    const Column& column = model.columns[c];
    const std::string name = as_utf8(column.name);
    const bool numbers = column.categories.empty();
    const Shape shape = model.window_rows > 0 ? Shape{model.window_rows, 1} : Shape{1};
    ports.push_back({name, numbers ? OnnxPort::Type::f64 : OnnxPort::Type::text, shape});
    parts.push_back(numbers ? number_column(column, name, std::ssize(shape), made)
                            : category_column(c, name, model, made));
  }
  Lines lines("columns", made);
  std::string value = lines.joined(std::move(parts), model.window_rows > 0 ? 2 : 1);
  if (!model.mean.empty()) {  // in double, as numbers may be far from 0 and near to one another
    std::vector<double> stddev = model.stddev;
    std::replace(stddev.begin(), stddev.end(), 0.0, 1.0);
    value = lines.add("Div", {lines.add("Sub", {value, lines.list(model.mean)}), lines.list(std::move(stddev))});
  }
  value = lines.as(OnnxPort::Type::f32, value);
  return lines.add("Where", {lines.add("IsNaN", {value}), lines.number(0), value});
}

std::string image_input(const ExportedInput& input, ops::OnnxNodes& made) {
  Lines lines("image " + input.feature.name, made);
  return lines.scaled(lines.as(OnnxPort::Type::f32, port_name(input.feature.name)), input);
}

/// A name that no port has yet.
std::string free_name(std::string name, const std::vector<OnnxPort>& inputs, const std::vector<OnnxPort>& outputs) {
  const auto taken = [&](const std::vector<OnnxPort>& ports) {
    return std::any_of(ports.begin(), ports.end(), [&](const OnnxPort& port) { return port.name == name; });
  };
  while (taken(inputs) || taken(outputs)) name = "output_" + name;
  return name;
}

bool is_of_text(const ExportedModel& model) {
  const auto& inputs = model.inputs;
  return !inputs.empty() && inputs.front().feature.kind == Feature::Kind::tokens;
}

/// Makes what `predict` says of one output: numbers, or probabilities and the likeliest class.
class Answers {
 public:
  Answers(const ExportedModel& model, const std::string& prediction, const std::vector<OnnxPort>& inputs,
          ops::OnnxNodes& made)
      : model_(model), prediction_(prediction), inputs_(inputs), lines_("answers", made) {}

  void add(const ExportedOutput& output) {
    const bool each_token = output.shape.size() > 1 && is_of_text(model_);  // scores of what may follow
    std::string value = prediction_;
    if (model_.outputs.size() > 1) {
      const std::int64_t end = output.first + elements(output.shape);
      Integers shape{0};
      shape.insert(shape.end(), output.shape.begin(), output.shape.end());
      value = lines_.reshape(lines_.add("Slice", {prediction_, lines_.list(Integers{output.first}),
                                                  lines_.list(Integers{end}), lines_.list(Integers{1})}),
                             shape);
      if (output.activation.empty()) give(value, output.name, OnnxPort::Type::f32, output.shape);
    }
    if (output.activation.empty() || each_token) return;
    if (output.activation == "softmax") {
      value = lines_.add("Softmax", {value}, {{"axis", std::int64_t{-1}}});
      give_classes(output, value, output.shape);
    } else if (elements(output.shape) == 1 && output.names.size() == 2) {  // the probability of the second
      value = lines_.reshape(lines_.add("Sigmoid", {value}), {-1, 1});
      give_classes(output, lines_.joined({lines_.add("Sub", {lines_.number(1), value}), value}), {2});
    } else {
      give(lines_.add("Sigmoid", {value}), called(output, "probabilities"), OnnxPort::Type::f32, output.shape);
    }
  }

  std::vector<OnnxPort> ports;

 private:
  static std::string called(const ExportedOutput& output, const std::string& what) {
    return output.name.empty() ? what : output.name + "/" + what;
  }

  void give_classes(const ExportedOutput& output, const std::string& probabilities, const Shape& shape) {
    std::string label =
        lines_.add("ArgMax", {probabilities}, {{"axis", std::int64_t{-1}}, {"keepdims", std::int64_t{0}}});
    const bool named = shape.size() == 1 && std::ssize(output.names) == shape[0];
    if (named) {
      Texts names;
      for (const std::string& name : output.names) names.push_back(as_utf8(name));
      label = lines_.add("Gather", {lines_.list(std::move(names)), label});
    }
    give(label, called(output, "label"), named ? OnnxPort::Type::text : OnnxPort::Type::i64,
         {shape.begin(), shape.end() - 1});
    give(probabilities, called(output, "probabilities"), OnnxPort::Type::f32, shape);
  }

  void give(const std::string& tensor, const std::string& name, OnnxPort::Type type, const Shape& shape) {
    ports.push_back(lines_.give(tensor, {free_name(name, inputs_, ports), type, shape}));
  }

  const ExportedModel& model_;
  const std::string& prediction_;
  const std::vector<OnnxPort>& inputs_;
  Lines lines_;
};

}  // namespace

std::string port_name(const std::string& name) {
  return kPort + name;
}

std::vector<OnnxPort> add_onnx_inputs(const ExportedModel& model, bool layers_only, ops::OnnxNodes& made) {
  std::vector<OnnxPort> ports;
  const Graph& graph = *model.graph;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value& value = graph.at(graph.inputs[i]);
    std::string& name = made.values[{graph.inputs[i], ops::Layout::channels_last}];
    const ExportedInput* const input = layers_only || model.inputs.empty() ? nullptr : &model.inputs.at(i);
    const auto kind = input == nullptr ? Feature::Kind::tensor : input->feature.kind;
    const bool image = kind == Feature::Kind::image;
    const OnnxPort port{value.name, image ? OnnxPort::Type::u8 : type_of(value.spec.dtype),
                        without_batch(value.spec.shape)};
    if (kind == Feature::Kind::columns) {
      name = table_input(model, port, ports, made);
      continue;
    }
    ports.push_back(port);
    name = image ? image_input(*input, made) : port_name(value.name);
  }
  return ports;
}

std::vector<OnnxPort> add_onnx_outputs(const ExportedModel& model, bool layers_only, const std::string& prediction,
                                       const std::vector<OnnxPort>& inputs, ops::OnnxNodes& made) {
  Answers answers(model, prediction, inputs, made);
  if (!layers_only) {
    for (const ExportedOutput& output : model.outputs) answers.add(output);
  }
  const Shape shape = without_batch(model.graph->at(model.graph->output).spec.shape);
  const std::string name = free_name("prediction", inputs, answers.ports);
  answers.ports.push_back(Lines("prediction", made).give(prediction, {name, OnnxPort::Type::f32, shape}));
  return std::move(answers.ports);
}

}  // namespace lockstep::formats
