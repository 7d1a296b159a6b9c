#include "tools/formats/torch_calls.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/arithmetic/channel_factors.hpp"
#include "ops/attention/attention_sizes.hpp"
#include "ops/axis.hpp"
#include "ops/conv/conv_shape.hpp"
#include "ops/conv_transpose/conv_transpose_shape.hpp"

namespace lockstep::formats {

namespace {

using Call = TorchCall;

/// A function of one value, elementwise or over images, with more arguments.
TorchFunction plain(const std::string& name, const std::string& more = "") {
  return [=](const Call& c) { return fmt::format("{}({}{})", name, c.inputs[0], more); };
}

TorchFunction between(const std::string& sign) {
  return [=](const Call& c) { return fmt::format("{}", fmt::join(c.inputs, sign)); };
}

/// Factors for channels get the dimensions between.
std::string product(const Call& c) {
  if (c.inputs.size() != 2 || !ops::are_channel_factors(std::vector<TensorSpec>{c.spec(0), c.spec(1)})) {
    return between(" * ")(c);
  }
  const bool has_all = c.spec(1).shape.size() == c.shape().size();
  std::string between_them;
  for (std::size_t i = 2; i < c.shape().size() && !has_all; ++i) between_them += ", None";
  const std::string factors = has_all        ? c.inputs[1]
                              : c.is_image() ? c.inputs[1] + "[:, :" + between_them + "]"
                                             : c.inputs[1] + "[:" + between_them + "]";
  return fmt::format("{} * {}", c.inputs[0], factors);
}

TorchFunction with_number(const std::string& name, const std::string& attribute) {
  return [=](const Call& c) { return fmt::format("{}({}, {})", name, c.inputs[0], c.attributes().number(attribute)); };
}

std::string pair(std::int64_t a, std::int64_t b) {
  return fmt::format("({}, {})", a, b);
}

/// The input, with the padding that PyTorch's own argument cannot say: one side more than the other.
std::string padded(const Call& c, ops::Window& window, const std::string& value) {
  ops::WindowAxis &h = window.height, &w = window.width;
  if (h.before == h.after && w.before == w.after) return c.inputs[0];
  std::string text =
      fmt::format("F.pad({}, ({}, {}, {}, {}), value={})", c.inputs[0], w.before, w.after, h.before, h.after, value);
  h.before = h.after = w.before = w.after = 0;
  return text;
}

std::string conv(const Call& c) {
  ops::ConvShape s = ops::conv_shape(c.attributes(), c.spec());
  const std::string x = padded(c, s.window, "0");
  const ops::WindowAxis &h = s.window.height, &w = s.window.width;
  return fmt::format("F.conv2d({}, {}, {}, {}, {}, {}, {})", x, c.tensors[0], c.optional(1), pair(h.stride, w.stride),
                     pair(h.before, w.before), pair(h.dilation, w.dilation), s.groups);
}

/// Without padding, and cut afterwards: sides may differ.
std::string conv_transpose(const Call& c) {
  const ops::ConvShape s = ops::conv_transpose_shape(c.attributes(), c.spec());
  const ops::WindowAxis &h = s.window.height, &w = s.window.width;
  const auto more = [](const ops::WindowAxis& axis) { return axis.after < 0 ? -axis.after : 0; };
  return fmt::format("F.conv_transpose2d({}, {}, {}, {}, 0, {}, {}, {})[:, :, {}:{}, {}:{}]", c.inputs[0], c.tensors[0],
                     c.optional(1), pair(h.stride, w.stride), pair(more(h), more(w)), s.groups,
                     pair(h.dilation, w.dilation), h.before, h.before + c.output()[1], w.before,
                     w.before + c.output()[2]);
}

std::string max_pool(const Call& c) {
  ops::Window window = ops::window_of("max_pool", c.attributes(), true);
  const std::string x = padded(c, window, "-torch.inf");
  const ops::WindowAxis &h = window.height, &w = window.width;
  return fmt::format("F.max_pool2d({}, {}, {}, {})", x, pair(h.kernel, w.kernel), pair(h.stride, w.stride),
                     pair(h.before, w.before));
}

/// With sides that differ: the sum of the window's pixels over the sum of ones there.
std::string avg_pool(const Call& c) {
  const ops::Window given = ops::window_of("avg_pool", c.attributes(), true);
  ops::Window window = given;
  const bool counts = c.attributes().boolean("count_include_pad");
  const std::string x = padded(c, window, "0");
  const ops::WindowAxis &h = window.height, &w = window.width;
  const auto pool = [&](const std::string& of) {
    return fmt::format("F.avg_pool2d({}, {}, {}, {}, count_include_pad={})", of, pair(h.kernel, w.kernel),
                       pair(h.stride, w.stride), pair(h.before, w.before), counts ? "True" : "False");
  };
  if (counts || x == c.inputs[0]) return pool(x);
  Call ones = c;
  ones.inputs[0] = fmt::format("torch.ones_like({})", c.inputs[0]);
  window = given;
  return fmt::format("{} / {}", pool(x), pool(padded(ones, window, "0")));
}

std::string batch_norm(const Call& c) {
  const bool tokens = c.shape().size() == 3;
  const std::string x = tokens ? c.inputs[0] + ".mT" : c.inputs[0];
  return fmt::format("F.batch_norm({}, {}, {}, {}, {}, self.training, {}, {}){}", x, c.tensors[2], c.tensors[3],
                     c.tensors[0], c.tensors[1], c.attributes().number("momentum"), c.attributes().number("epsilon"),
                     tokens ? ".mT" : "");
}

std::string group_norm(const Call& c) {
  const std::int64_t channels = c.shape().back();
  const std::int64_t groups = c.attributes().has("groups") ? c.attributes().integer("groups") : channels;
  const bool tokens = c.shape().size() == 3;
  return fmt::format("F.group_norm({}{}, {}, {}, {}, {}){}", c.inputs[0], tokens ? ".mT" : "", groups, c.optional(0),
                     c.optional(1), c.attributes().number("epsilon"), tokens ? ".mT" : "");
}

std::string layer_norm(const Call& c) {
  return c.from_last(fmt::format("F.layer_norm({}, ({},), {}, {}, {})", c.last(), c.shape().back(), c.tensors[0],
                                 c.optional(1), c.attributes().number("epsilon")));
}

std::string rms_norm(const Call& c) {
  return c.from_last(fmt::format("F.rms_norm({}, ({},), {}, {})", c.last(), c.shape().back(), c.tensors[0],
                                 c.attributes().number("epsilon")));
}

std::string linear(const Call& c) {
  return c.from_last(fmt::format("F.linear({}, {}, {})", c.last(), c.tensors[0], c.optional(1)));
}

/// Whether each position comes before its sample's end: input `index` is lengths.
std::string before_end(const Call& c, std::size_t index, std::int64_t positions) {
  return fmt::format("(torch.arange({}, device={}.device) < {}[:, None])", positions, c.inputs[index], c.inputs[index]);
}

/// Input 0 [b, T, ...], with `value` at the positions behind a sample's end, if input 1 is lengths.
std::string with_padding(const Call& c, const std::string& value) {
  if (c.inputs.size() < 2) return c.last();
  std::string there = before_end(c, 1, c.shape()[1]);
  for (std::size_t i = 2; i < c.shape().size(); ++i) there += "[..., None]";
  return fmt::format("torch.where({}, {}, {})", there, c.last(), value);
}

std::string counted(const Call& c, bool maximum) {
  if (maximum) return fmt::format("{}.amax(1)", with_padding(c, "-torch.inf"));
  std::string lengths = c.inputs[1];
  for (std::size_t i = 2; i < c.shape().size(); ++i) lengths += "[..., None]";
  return fmt::format("{}.sum(1) / {}", with_padding(c, "0.0"), lengths);
}

std::string last_position(const Call& c) {
  if (c.inputs.size() < 2) return c.last() + "[:, -1]";
  return fmt::format("{}[torch.arange(len({}), device={}.device), {}.long() - 1]", c.last(), c.inputs[0], c.inputs[1],
                     c.inputs[1]);
}

/// Position t of a sample of length n is n - 1 - t, or t behind its end.
std::string reversed(const Call& c) {
  if (c.inputs.size() < 2) return c.from_last(c.last() + ".flip(1)");
  const std::string &x = c.inputs[0], &lengths = c.inputs[1];
  const std::string t = fmt::format("torch.arange({}, device={}.device)", c.shape()[1], x);
  return c.from_last(
      fmt::format("{}[torch.arange(len({}), device={}.device)[:, None], torch.where({}, {}.long()[:, None] - 1 - "
                  "{}, {})]",
                  c.last(), x, x, before_end(c, 1, c.shape()[1]), lengths, t, t));
}

std::string attention(const Call& c) {
  std::vector<TensorSpec> inputs;
  for (std::size_t i = 0; i < c.node.inputs.size(); ++i) inputs.push_back(c.spec(i));
  const ops::AttentionSizes s(c.attributes(), inputs);
  const auto heads = [&](std::string of, std::int64_t count) {
    return fmt::format("{}.unflatten(-1, ({}, {})).transpose(1, 2)", std::move(of), count, s.size);
  };
  std::vector<std::string> qkv = c.inputs;
  if (s.packed) {
    const std::int64_t k = s.width(), v = k + s.kv_width();
    qkv = {fmt::format("{}[..., :{}]", c.inputs[0], k), fmt::format("{}[..., {}:{}]", c.inputs[0], k, v),
           fmt::format("{}[..., {}:]", c.inputs[0], v)};
  }
  std::string seen = s.causal ? "is_causal=True" : "is_causal=False";
  if (s.padded) {
    seen = fmt::format("attn_mask={}[:, None, None]", before_end(c, c.node.inputs.size() - 1, s.keys));
    if (s.causal)
      seen += fmt::format(" & torch.ones({0}, {0}, dtype=torch.bool, device={1}.device).tril()", s.keys, c.inputs[0]);
  }
  return fmt::format("F.scaled_dot_product_attention({}, {}, {}, {}, enable_gqa={}).transpose(1, 2).flatten(2)",
                     heads(qkv[0], s.heads), heads(qkv[1], s.kv_heads), heads(qkv[2], s.kv_heads), seen,
                     s.group() > 1 ? "True" : "False");
}

std::string concat(const Call& c) {
  const auto axis = c.axis(ops::axis_of("concat", c.attributes(), c.shape()));
  return fmt::format("torch.cat(({},), {})", fmt::join(c.inputs, ", "), axis);
}

std::string slice(const Call& c) {
  const auto ours = ops::axis_of("slice", c.attributes(), c.shape());
  std::int64_t begin = c.attributes().integer("begin");
  if (begin < 0) begin += c.shape()[ours];
  return fmt::format("{}.narrow({}, {}, {})", c.inputs[0], c.axis(ours), begin, c.output()[ours]);
}

/// Over the last two dimensions of ours, also of images.
std::string matmul(const Call& c) {
  const char* const transposed = c.attributes().boolean("transpose") ? ".mT" : "";
  return c.from_last(fmt::format("({} @ {}{})", c.last(0), c.last(1), transposed));
}

TorchFunction over_axis(const std::string& name, const std::string& op) {
  return [=](const Call& c) {
    if (c.inputs.size() > 1) return c.from_last(counted(c, op == "max"));
    return c.from_last(fmt::format("{}.{}({})", c.last(), name, ops::axis_of(op, c.attributes(), c.shape())));
  };
}

std::string global_pool(const Call& c) {
  if (c.shape().size() == 2) return c.inputs[0];
  const char* const name = c.attributes().text("kind") == "max" ? "amax" : "mean";
  if (c.inputs.size() > 1) return counted(c, c.attributes().text("kind") == "max");
  std::vector<std::size_t> axes;
  for (std::size_t i = 1; i + 1 < c.shape().size(); ++i) axes.push_back(c.axis(i));
  return fmt::format("{}.{}(({},))", c.inputs[0], name, fmt::join(axes, ", "));
}

/// A flattened image is in PyTorch's order; so is what an image is made of again.
std::string reshape(const Call& c) {
  const Shape& out = c.output();
  if (c.is_image() && out.size() == 2) return c.inputs[0] + ".flatten(1)";
  if (c.flat_image && out.size() == 4)
    return fmt::format("{}.reshape(-1, {}, {}, {})", c.inputs[0], out[3], out[1], out[2]);
  return c.from_last(fmt::format("{}.reshape(-1, {})", c.last(), fmt::join(out.begin() + 1, out.end(), ", ")));
}

std::string transpose(const Call& c) {
  const auto order = c.attributes().integers("order");
  return c.from_last(fmt::format("{}.permute(0, {})", c.last(), fmt::join(order, ", ")));
}

std::string pad(const Call& c) {
  auto sides = c.attributes().integers("sides");
  if (sides.size() == 1) sides = {sides[0], sides[0]};
  if (sides.size() == 2) sides = {sides[0], sides[0], sides[1], sides[1]};
  return fmt::format("F.pad({}, ({}, {}, {}, {}), \"{}\")", c.inputs[0], sides[2], sides[3], sides[0], sides[1],
                     c.attributes().text("mode") == "reflect" ? "reflect" : "constant");
}

std::string upsample(const Call& c) {
  const auto factors = c.attributes().integers("factor");
  const bool linear = c.attributes().text("mode") == "bilinear";
  return fmt::format("F.interpolate({}, scale_factor={}, mode=\"{}\")", c.inputs[0],
                     pair(factors.front(), factors.back()), linear ? "bilinear" : "nearest");
}

std::string prelu(const Call& c) {
  const bool tokens = c.shape().size() == 3;
  return fmt::format("F.prelu({}{}, {}){}", c.inputs[0], tokens ? ".mT" : "", c.tensors[0], tokens ? ".mT" : "");
}

std::string rope(const Call& c) {
  return fmt::format("rope({}, {}, {})", c.inputs[0], c.attributes().integer("heads"), c.attributes().number("base"));
}

/// PyTorch's own functions of the layers torch.nn.LSTM and GRU.
TorchFunction recurrent(const std::string& name, int states) {
  return [=](const Call& c) {
    const std::string zeros =
        fmt::format("{}.new_zeros(1, {}.shape[0], {})", c.inputs[0], c.inputs[0], c.attributes().integer("features"));
    const std::string state = states == 2 ? fmt::format("({0}, {0})", zeros) : zeros;
    return fmt::format("torch.{}({}, {}, ({},), {}, 1, 0.0, self.training, False, True)[0]", name, c.inputs[0], state,
                       fmt::join(c.tensors, ", "), c.attributes().boolean("bias") ? "True" : "False");
  };
}

std::string gelu(const Call& c) {
  return fmt::format("F.gelu({}, approximate=\"{}\")", c.inputs[0], c.attributes().text("approximate"));
}

}  // namespace

std::string TorchCall::last(std::size_t i) const {
  return spec(i).shape.size() == 4 ? inputs[i] + ".permute(0, 2, 3, 1)" : inputs[i];
}

std::string TorchCall::from_last(const std::string& value) const {
  return output().size() == 4 ? value + ".permute(0, 3, 1, 2)" : value;
}

std::size_t TorchCall::axis(std::size_t ours) const {
  return !is_image() || ours == 0 ? ours : ours == 3 ? 1 : ours + 1;
}

const std::map<std::string, TorchFunction>& torch_functions() {
  static const std::map<std::string, TorchFunction> kFunctions = {
      {"add", between(" + ")},
      {"attention", attention},
      {"avg_pool", avg_pool},
      {"batch_norm", batch_norm},
      {"class_token",
       [](const Call& c) {
         return fmt::format("torch.cat([{}.expand(len({}), 1, -1), {}], 1)", c.tensors[0], c.inputs[0], c.inputs[0]);
       }},
      {"concat", concat},
      {"conv", conv},
      {"conv_transpose", conv_transpose},
      {"dropout",
       [](const Call& c) {
         return fmt::format("F.dropout({}, {}, self.training)", c.inputs[0], c.attributes().number("rate"));
       }},
      {"elu", with_number("F.elu", "alpha")},
      {"embedding", [](const Call& c) { return fmt::format("F.embedding({}, {})", c.inputs[0], c.tensors[0]); }},
      {"flatten", reshape},
      {"gelu", gelu},
      {"global_pool", global_pool},
      {"group_norm", group_norm},
      {"gru", recurrent("gru", 1)},
      {"hardswish", plain("F.hardswish")},
      {"instance_norm", group_norm},
      {"last", last_position},
      {"layer_norm", layer_norm},
      {"leaky_relu", with_number("F.leaky_relu", "slope")},
      {"linear", linear},
      {"lstm", recurrent("lstm", 2)},
      {"mask", [](const Call& c) { return c.from_last(with_padding(c, "0.0")); }},
      {"matmul", matmul},
      {"max", over_axis("amax", "max")},
      {"max_pool", max_pool},
      {"mean", over_axis("mean", "mean")},
      {"mul", product},
      {"pad", pad},
      {"position_embedding",
       [](const Call& c) {
         const bool same = c.attributes().has("same") && c.attributes().boolean("same");
         return fmt::format("{} + {}[:{}]", c.inputs[0], c.tensors[0], same ? 1 : c.shape()[1]);
       }},
      {"prelu", prelu},
      {"relu", plain("F.relu")},
      {"relu6", plain("F.relu6")},
      {"reshape", reshape},
      {"reverse", reversed},
      {"rms_norm", rms_norm},
      {"rope", rope},
      {"scale",
       [](const Call& c) {
         const std::string product = fmt::format("{} * {}", c.inputs[0], c.attributes().number("factor"));
         return c.attributes().has("shift") ? fmt::format("{} + {}", product, c.attributes().number("shift")) : product;
       }},
      {"sigmoid", plain("torch.sigmoid")},
      {"silu", plain("F.silu")},
      {"slice", slice},
      {"softmax",
       [](const Call& c) { return fmt::format("torch.softmax({}, {})", c.inputs[0], c.is_image() ? 1 : -1); }},
      {"softplus", plain("F.softplus")},
      {"sub", between(" - ")},
      {"tanh", plain("torch.tanh")},
      {"transpose", transpose},
      {"upsample", upsample}};
  return kFunctions;
}

}  // namespace lockstep::formats
