// A model in inference mode as an ONNX file.
#pragma once

#include <string>

#include "exchange/exported_model.hpp"

namespace lockstep::exchange {

inline constexpr int kOnnxOpset = 20, kOnnxIrVersion = 9;

/// The bytes of the file. Inputs have the model's names and shapes, with a batch of any size; the output is called
/// "prediction". Throws Error(usage), naming all ops that cannot be written to ONNX, and for a model of over 2 GiB,
/// which the format cannot have in one file.
[[nodiscard]] std::string onnx_model(const ExportedModel& model);

}  // namespace lockstep::exchange
