// What is exported of which ops, and the messages where that cannot be.
#include <gtest/gtest.h>

#include "lockstep/error.hpp"
#include "lockstep/graph_builder.hpp"
#include "ops/onnx_scope.hpp"
#include "ops/registry.hpp"
#include "tools/formats/onnx_model.hpp"
#include "tools/formats/torch_calls.hpp"
#include "tools/formats/torch_module.hpp"
#include "tools/formats/torch_weights.hpp"

namespace lockstep::formats {

namespace {

class Exports : public testing::Test {
 protected:
  Exports() { ops::add_built_in(registry_); }

  ExportedModel exported() {
    return {.graph = &builder_.graph(),
            .values = [this](ValueId id) -> std::span<const float> {
              auto& values = values_[id];
              values.resize(static_cast<std::size_t>(builder_.graph().at(id).spec.elements()), 1);
              return values;
            },
            .job = "job",
            .source = "run"};
  }

  ops::OnnxNodes nodes() {
    Graph& graph = builder_.graph();
    ops::OnnxNodes made;
    for (const ValueId id : graph.inputs) made.values[{id, ops::Layout::channels_last}] = graph.at(id).name;
    const auto values = exported().values;
    for (const Node& node : graph.nodes) {
      ops::OnnxScope scope(graph, node, values, made);
      ops::onnx_functions().at(node.op->name)(scope);
    }
    return made;
  }

  std::string types() {
    std::string text;
    for (const auto& node : nodes().nodes) text += (text.empty() ? "" : " ") + node.type;
    return text;
  }

  template <class F>
  static std::string message(const F& run) {
    try {
      run();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return error.what();
    }
    return "";
  }

  OpRegistry registry_;
  GraphBuilder builder_{registry_, 2};
  std::map<ValueId, std::vector<float>> values_;
};

}  // namespace

TEST_F(Exports, EveryLayerCanBeWritten) {
  for (const OpDef* op : registry_.all()) {
    if (op->kind != OpKind::layer) continue;
    EXPECT_TRUE(ops::onnx_functions().contains(op->name)) << op->name;
    EXPECT_TRUE(torch_functions().contains(op->name)) << op->name;
  }
}

TEST_F(Exports, AnOpThatCannotBeIsNamed) {
  for (const char* name : {"mine", "yours"}) {
    OpDef op = registry_.at("relu");
    op.name = name;
    registry_.add(op);
  }
  const ValueId x = builder_.input("x", {DType::f32, {4}});
  builder_.graph().output = builder_.apply("yours", {builder_.apply("relu", {builder_.apply("mine", {x})})});
  EXPECT_EQ(message([&] { (void)onnx_model(exported()); }),
            "--to onnx: expected ops that lockstep can write to ONNX, found mine, yours; export the weights with --to "
            "torch, or take other layers");
  EXPECT_EQ(message([&] { (void)torch_module(exported(), "a.safetensors"); }),
            "--to torch: expected ops that PyTorch has, found mine, yours; export without --to");
}

TEST_F(Exports, ARunOfLayersForImagesIsTransposedAtItsEnds) {
  ValueId x = builder_.input("image", {DType::f32, {8, 8, 3}});
  x = builder_.apply("conv", {x}, Attributes({{"filters", std::int64_t{4}}, {"kernel", std::int64_t{3}}}), "conv");
  x = builder_.apply("relu", {builder_.apply("batch_norm", {x}, {}, "norm")}, {}, "relu");
  x = builder_.apply(
      "add",
      {x, builder_.apply(
              "max_pool", {x},
              Attributes({{"kernel", std::int64_t{3}}, {"stride", std::int64_t{1}}, {"padding", std::int64_t{1}}}))});
  builder_.apply("flatten", {x});
  EXPECT_EQ(types(), "Transpose Conv BatchNormalization Relu MaxPool Add Transpose Reshape");
  const auto made = nodes();
  EXPECT_EQ(made.nodes[1].inputs, (std::vector<std::string>{"conv/0", "conv.weight", "conv.bias"}));
}

TEST_F(Exports, WeightsOfAnUnclearFlattenAreNotExportedForTorch) {
  const ValueId x = builder_.apply("flatten", {builder_.input("image", {DType::f32, {2, 2, 3}})});
  const ValueId y = builder_.apply("linear", {x}, Attributes({{"features", std::int64_t{2}}}));
  builder_.graph().output = builder_.apply("concat", {x, y}, {}, "both");
  EXPECT_EQ(
      message([&] { (void)torch_weights(exported(), nullptr); }),
      "--to torch: PyTorch flattens images in the order channel, height, width, lockstep in height, width, channel, "
      "and concat 'both' mixes such an image with something else; export without --to, and put the columns of the "
      "linear layers behind it in PyTorch's order yourself");
}

TEST_F(Exports, TensorsThatPyTorchCallsTheSameAreNotExportedForIt) {
  const Attributes features({{"features", std::int64_t{2}}});
  const ValueId x = builder_.input("x", {DType::f32, {3, 4}});
  builder_.graph().output =
      builder_.apply("lstm", {builder_.apply("lstm", {x}, features, "rnn")}, features, "rnn.forwards");
  EXPECT_EQ(
      message([&] { (void)torch_weights(exported(), nullptr); }),
      "--to torch: expected tensors with names of their own, found rnn.weight_ih and rnn.forwards.weight_ih, which "
      "are both rnn.weight_ih_l0 in PyTorch; export without --to, and rename one of them yourself");
}

TEST_F(Exports, ThePythonFileHasLayersThatAreCalledAsMembersOfModules) {
  const Attributes features({{"features", std::int64_t{2}}});
  const ValueId x = builder_.apply("linear", {builder_.input("x", {DType::f32, {4}})}, features, "training");
  builder_.graph().output = builder_.apply("batch_norm", {builder_.apply("relu", {x}, {}, "len")}, {}, "forward");
  EXPECT_EQ(torch_module(exported(), "a.safetensors"),
            R"("job in PyTorch, as lockstep exported it from run."
import pathlib

from safetensors.torch import load_file
import torch
from torch.nn import functional as F

PARAMETERS = {
    "training.weight": [2, 4],
    "training.bias": [2],
    "forward.weight": [2],
    "forward.bias": [2],
}
BUFFERS = {
    "forward.running_mean": [2],
    "forward.running_var": [2],
}


class Layer(torch.nn.Module):
    """Has layers of any name, also of those that torch.nn.Module keeps for itself: "type", "forward", "training"."""

    def __setattr__(self, name, value):
        is_kept = name in self.__dict__ or hasattr(torch.nn.Module, name)
        if is_kept and not isinstance(value, torch.nn.Module):
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def at(self, name):
        """The layer that has a tensor, made where it is missing, and the tensor's name in it."""
        *path, last = name.split(".")
        layer = self
        for part in path:
            layer = layer._modules.setdefault(part, Layer())
        return layer, last


class Model(Layer):
    def __init__(self):
        super().__init__()
        for name, shape in PARAMETERS.items():
            layer, last = self.at(name)
            layer._parameters[last] = torch.nn.Parameter(torch.empty(shape))
        for name, shape in BUFFERS.items():
            layer, last = self.at(name)
            layer._buffers[last] = torch.empty(shape)

    def forward(self, x):
        t = dict(self.named_parameters()) | dict(self.named_buffers())
        training = F.linear(x, t["training.weight"], t["training.bias"])
        len_ = F.relu(training)
        forward = F.batch_norm(len_, t["forward.running_mean"], t["forward.running_var"], )"
            R"(t["forward.weight"], t["forward.bias"], self.training, 0.1, 1e-05)
        return forward


def load(path=pathlib.Path(__file__).with_name("a.safetensors")):
    model = Model()
    model.load_state_dict(load_file(path))
    return model.eval()
)");
}

TEST_F(Exports, OnlyModelsOfTransformersGoThere) {
  const ValueId x = builder_.input("x", {DType::f32, {4}});
  builder_.graph().output = builder_.apply("linear", {x}, Attributes({{"features", std::int64_t{2}}}));
  EXPECT_EQ(
      message([&] { (void)huggingface_files(exported()); }),
      "--to huggingface: expected a model that transformers has, gpt with biases, llama, bert with types or vit with "
      "pool: token, found another one; take --to torch or --to onnx");
}

}  // namespace lockstep::formats
