// What the plugin adds, each from a file of its own.
#pragma once

#include <lockstep/data_set.hpp>
#include <lockstep/op.hpp>

lockstep::OpDef mish();           // a layer: x * tanh(softplus(x))
lockstep::OpDef log_cosh();       // a loss
lockstep::OpDef percent_error();  // a metric
lockstep::ReaderDef libsvm();     // a reader

/// The outputs of a loss or metric that goes element by element: values and counts of samples. Throws
/// Error(configuration) unless prediction and target are floats, and as many.
lockstep::Signature of_elements(const std::string& op, std::span<const lockstep::TensorSpec> inputs);
