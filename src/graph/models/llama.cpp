// llama: the decoder-only transformer of Llama: pre-norm blocks with rms_norm, rotary positions, attention whose heads
// share keys and values in groups, and a feed-forward layer gated by silu (SwiGLU); no biases, and a head of its own.
// Weights begin as gpt's: with a standard deviation of 0.02, and 0.02 / sqrt(2 * layers) for the projections into the
// residual stream.
// Sources: Touvron et al., "Llama 2: Open foundation and fine-tuned chat models", 2023; Grattafiori et al., "The Llama
// 3 herd of models", 2024; Shazeer, "GLU variants improve transformer", 2020.
#include <fmt/format.h>

#include <cmath>

#include "graph/zoo.hpp"
#include "lockstep/error.hpp"

namespace lockstep::models {

namespace {

struct LlamaSize {
  std::int64_t layers, heads, kv_heads, width, hidden;
  double rope_base;
};

LlamaSize llama_size(const Attributes& attributes) {
  const std::string& name = attributes.text("size");
  LlamaSize size{4, 4, 2, 128, 352, 10000};  // "tiny": a character model for a CPU
  if (name == "small") size = {6, 6, 2, 384, 1024, 10000};
  if (name == "llama2-7b") size = {32, 32, 32, 4096, 11008, 10000};
  if (name == "llama3-8b") size = {32, 32, 8, 4096, 14336, 500000};
  if (attributes.has("layers")) size.layers = attributes.integer("layers");
  if (attributes.has("heads")) size.heads = size.kv_heads = attributes.integer("heads");
  if (attributes.has("kv_heads")) size.kv_heads = attributes.integer("kv_heads");
  if (attributes.has("width")) {
    size.width = attributes.integer("width");
    size.hidden = (8 * size.width / 3 + 31) / 32 * 32;  // about as many weights as an ungated layer of 4 * width
  }
  if (attributes.has("hidden")) size.hidden = attributes.integer("hidden");
  if (attributes.has("rope_base")) size.rope_base = attributes.number("rope_base");
  const auto refuse = [](const std::string& message) { throw Error(ExitCode::configuration, "llama: " + message); };
  if (size.width % (2 * size.heads) != 0) {
    refuse(fmt::format("expected a width of {} heads of an even size, found {}", size.heads, size.width));
  }
  if (size.heads % size.kv_heads != 0) {
    refuse(fmt::format("expected kv_heads that divide the {} heads, found {}", size.heads, size.kv_heads));
  }
  return size;
}

class Llama {
 public:
  Llama(GraphBuilder& builder, const Attributes& attributes)
      : b_(builder),
        size_(llama_size(attributes)),
        epsilon_(attributes.has("epsilon") ? attributes.number("epsilon") : 1e-5),
        tied_(attributes.has("tied") && attributes.boolean("tied")),
        residual_stddev_(0.02 / std::sqrt(2.0 * size_.layers)) {}

  ValueId build(ValueId tokens, std::int64_t vocabulary) {
    ValueId x = b_.apply("embedding", {tokens},
                         Attributes({{"vocabulary", vocabulary}, {"width", size_.width}, {"std", 0.02}}), "tokens");
    for (std::int64_t i = 1; i <= size_.layers; ++i) x = block(x, fmt::format("block{}", i));
    x = norm(x, "norm");
    if (!tied_) return linear(x, vocabulary, 0.02, "head");
    return b_.apply("linear", {x}, Attributes({{"features", vocabulary}, {"tied", std::string("tokens")}}), "head");
  }

 private:
  ValueId block(ValueId x, const std::string& name) {
    b_.begin_block(name);
    ValueId y = norm(x, name + ".norm1");
    const std::int64_t kv_width = size_.width / size_.heads * size_.kv_heads;
    const ValueId q = rope(linear(y, size_.width, 0.02, name + ".query"), size_.heads, name + ".query_rope");
    const ValueId k = rope(linear(y, kv_width, 0.02, name + ".key"), size_.kv_heads, name + ".key_rope");
    const ValueId v = linear(y, kv_width, 0.02, name + ".value");
    y = b_.apply("attention", {q, k, v},
                 Attributes({{"heads", size_.heads}, {"kv_heads", size_.kv_heads}, {"causal", true}}),
                 name + ".attention");
    x = b_.apply("add", {x, linear(y, size_.width, residual_stddev_, name + ".projection")}, {}, name + ".add1");
    y = norm(x, name + ".norm2");
    const ValueId gate = b_.apply("silu", {linear(y, size_.hidden, 0.02, name + ".gate")}, {}, name + ".silu");
    y = b_.apply("mul", {gate, linear(y, size_.hidden, 0.02, name + ".up")}, {}, name + ".gated");
    x = b_.apply("add", {x, linear(y, size_.width, residual_stddev_, name + ".down")}, {}, name + ".add2");
    b_.begin_block("");
    return x;
  }
  ValueId linear(ValueId x, std::int64_t features, double stddev, const std::string& name) {
    return b_.apply("linear", {x}, Attributes({{"features", features}, {"bias", false}, {"std", stddev}}), name);
  }
  ValueId norm(ValueId x, const std::string& name) {
    return b_.apply("rms_norm", {x}, Attributes({{"epsilon", epsilon_}}), name);
  }
  ValueId rope(ValueId x, std::int64_t heads, const std::string& name) {
    return b_.apply("rope", {x}, Attributes({{"heads", heads}, {"base", size_.rope_base}}), name);
  }

  GraphBuilder& b_;
  LlamaSize size_;
  double epsilon_;
  bool tied_;
  double residual_stddev_;
};

ValueId build_llama(GraphBuilder& b, const Attributes& attributes, const ModelContext& context) {
  return Llama(b, attributes).build(only_input(context, "llama"), vocabulary_of(attributes, context, "llama"));
}

}  // namespace

ModelDef make_llama() {
  return {
      .name = "llama",
      .doc = "Llama's decoder-only transformer.",
      .attributes = {{.name = "size",
                      .kind = AttributeKind::text,
                      .doc = "layers, heads, kv_heads, width, hidden: tiny 4, 4, 2, 128, 352; small 6, 6, 2, 384, "
                             "1024; llama2-7b 32, 32, 32, 4096, 11008; llama3-8b 32, 32, 8, 4096, 14336",
                      .default_value = Attribute(std::string("tiny")),
                      .choices = {"tiny", "small", "llama2-7b", "llama3-8b"}},
                     optional_size("layers", "blocks; default: by size"),
                     optional_size("heads", "attention heads; default: by size"),
                     optional_size("kv_heads", "heads of keys and values; default: `heads` if given, else by size"),
                     optional_size("width", "width of the residual stream; default: by size"),
                     optional_size(
                         "hidden",
                         "features between a block's linear layers; default: 8 / 3 of `width` if given, else by size"),
                     {.name = "rope_base",
                      .kind = AttributeKind::number,
                      .doc = "base of the rotary positions; default: 10000, llama3-8b 500000",
                      .optional = true,
                      .minimum = 1},
                     {.name = "epsilon",
                      .kind = AttributeKind::number,
                      .doc = "added to the mean square in norms; default 1e-5",
                      .optional = true,
                      .minimum = 0},
                     {.name = "tied",
                      .kind = AttributeKind::boolean,
                      .doc = "the head shares the embedding's weight",
                      .optional = true},
                     optional_size("vocabulary", "distinct tokens; default: the data set's")},
      .shorthand = "size",
      .build = build_llama};
}

}  // namespace lockstep::models
