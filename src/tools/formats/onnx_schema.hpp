// What stands around a model's layers in an ONNX graph, so that it takes samples as they are stored and answers as
// `lockstep predict` does: a table's columns one by one, numbers or texts, with what stands for a missing value; images
// as bytes; names of classes and probabilities.
#pragma once

#include <string>
#include <vector>

#include "ops/onnx_scope.hpp"
#include "tools/formats/exported_model.hpp"

namespace lockstep::formats {

/// An input or output of the graph; its first dimension, the batch, is left out.
struct OnnxPort {
  enum class Type : std::uint8_t { f32 = 1, u8 = 2, i32 = 6, i64 = 7, text = 8, f64 = 11 };  ///< ONNX's numbers
  std::string name;
  Type type = Type::f32;
  Shape shape;
};

/// How nodes call an input or output of the graph, whatever names the model's own values have.
[[nodiscard]] std::string port_name(const std::string& name);

/// Adds nodes that make the inputs of the layers. `layers_only`: none, the graph takes what its layers do.
[[nodiscard]] std::vector<OnnxPort> add_onnx_inputs(const ExportedModel& model, bool layers_only, ops::OnnxNodes& made);

/// Adds nodes that make answers of the layers' output, the value `prediction`. Names that `inputs` have are avoided.
[[nodiscard]] std::vector<OnnxPort> add_onnx_outputs(const ExportedModel& model, bool layers_only,
                                                     const std::string& prediction, const std::vector<OnnxPort>& inputs,
                                                     ops::OnnxNodes& made);

}  // namespace lockstep::formats
