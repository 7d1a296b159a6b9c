// A model in inference mode as an ONNX file.
#pragma once

#include <string>

#include "tools/formats/exported_model.hpp"

namespace lockstep::formats {

inline constexpr int kOnnxOpset = 20, kOnnxMlOpset = 3, kOnnxIrVersion = 9;

/// The bytes of the file, with a batch of any size. It takes samples as they are stored, and answers as `lockstep
/// predict` does (onnx_schema.hpp); the layers' own output is called "prediction". `layers_only`: inputs are what the
/// layers take, and this is the only output. Throws Error(usage), naming all ops that cannot be written to ONNX, and
/// for a model of over 2 GiB, which the format cannot have in one file.
[[nodiscard]] std::string onnx_model(const ExportedModel& model, bool layers_only = false);

}  // namespace lockstep::formats
