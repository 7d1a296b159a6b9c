// conv by oneDNN. Activations stay NHWC (as fast as oneDNN's blocked layouts, measured with ResNet-20's shapes).
#include <memory>

#include "device/cpu/dnnl_layer.hpp"
#include "ops/conv/conv_shape.hpp"
#include "ops/dnnl_layer_cpu.hpp"
#include "ops/upcast.hpp"

namespace lockstep::ops {

namespace {

using device::ConvolutionSpec;
using Tag = dnnl::memory::format_tag;

DnnlLayerShape layer_shape(const ConvShape& s) {
  const std::int64_t in = s.image.channels / s.groups, h = s.window.height.kernel, w = s.window.width.kernel;
  DnnlLayerShape shape;
  shape.source = {s.image.batch, s.image.channels, s.image.height, s.image.width};
  shape.destination = {s.image.batch, s.filters, s.image.out_height, s.image.out_width};
  shape.activations = Tag::nhwc;
  shape.weight = {s.filters, in, h, w};
  if (s.groups > 1) shape.weight = {s.groups, s.filters / s.groups, in, h, w};
  shape.plain_weight = s.groups > 1 ? Tag::goihw : Tag::oihw;
  return shape;
}

ConvolutionSpec spec_of(const ConvShape& s, bool training) {
  const WindowAxis &h = s.window.height, &w = s.window.width;
  ConvolutionSpec spec;
  spec.strides = {h.stride, w.stride};
  spec.dilations = {h.dilation - 1, w.dilation - 1};
  spec.padding_before = {h.before, w.before};
  // The padding with which oneDNN computes exactly this output; negative if the last rows are outside of every window.
  const auto after = [](const WindowAxis& axis, std::int64_t in, std::int64_t out) {
    return (out - 1) * axis.stride + axis.reach() - in - axis.before;
  };
  spec.padding_after = {after(h, s.image.height, s.image.out_height), after(w, s.image.width, s.image.out_width)};
  spec.training = training;
  return spec;
}

}  // namespace

std::unique_ptr<Kernel> make_conv_cpu(const KernelRequest& request) {
  if (needs_upcast(request) && !multiplies_natively(request, dnnl::get_effective_cpu_isa())) return nullptr;
  const ConvShape shape = conv_shape(*request.attributes, request.inputs[0]);
  return make_dnnl_layer(request, layer_shape(shape),
                         [&](const dnnl::engine& engine, const device::DnnlTensors& tensors) {
                           ConvolutionSpec spec = spec_of(shape, request.mode == Mode::training);
                           spec.tensors = tensors;
                           return describe(engine, spec);
                         });
}

}  // namespace lockstep::ops
