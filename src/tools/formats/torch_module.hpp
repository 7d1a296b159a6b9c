// A model as the text of a Python file: a torch.nn.Module whose forward() computes the same, with the functions of
// torch.nn.functional, and whose tensors have the names that torch_weights() writes.
//
// Images are [batch, channels, height, width] there, inputs as well; everything else is as in the model.
#pragma once

#include <string>

#include "tools/formats/exported_model.hpp"

namespace lockstep::formats {

/// `file`: the name of the weights beside it. Throws Error(usage), naming all ops that it cannot write.
[[nodiscard]] std::string torch_module(const ExportedModel& model, const std::string& file);

}  // namespace lockstep::formats
