// conv_transpose by oneDNN, in float32, on images NHWC.
#include <memory>

#include "device/cpu/dnnl_layer.hpp"
#include "ops/conv_transpose/conv_transpose_shape.hpp"
#include "ops/dnnl_layer_cpu.hpp"

namespace lockstep::ops {

namespace {

using Tag = dnnl::memory::format_tag;

/// oneDNN counts the output's channels first; in memory those of the input are.
DnnlLayerShape transposed_layer_shape(const ConvShape& s) {
  const std::int64_t out = s.image.channels / s.groups, h = s.window.height.kernel, w = s.window.width.kernel;
  DnnlLayerShape shape;
  shape.source = {s.image.batch, s.filters, s.image.out_height, s.image.out_width};
  shape.destination = {s.image.batch, s.image.channels, s.image.height, s.image.width};
  shape.activations = Tag::nhwc;
  shape.weight = {out, s.filters, h, w};
  if (s.groups > 1) shape.weight = {s.groups, out, s.filters / s.groups, h, w};
  shape.plain_weight = s.groups > 1 ? Tag::giohw : Tag::iohw;
  return shape;
}

}  // namespace

std::unique_ptr<Kernel> make_conv_transpose_cpu(const KernelRequest& request) {
  const ConvShape s = conv_transpose_shape(*request.attributes, request.inputs[0]);
  return make_dnnl_layer(request, transposed_layer_shape(s),
                         [&](const dnnl::engine& engine, const device::DnnlTensors& tensors) {
                           const WindowAxis &h = s.window.height, &w = s.window.width;
                           device::ConvolutionSpec spec;
                           spec.tensors = tensors;
                           spec.strides = {h.stride, w.stride};
                           spec.dilations = {h.dilation - 1, w.dilation - 1};
                           spec.padding_before = {h.before, w.before};
                           spec.padding_after = {h.after, w.after};
                           spec.training = request.mode == Mode::training;
                           spec.transposed = true;
                           return describe(engine, spec);
                         });
}

}  // namespace lockstep::ops
