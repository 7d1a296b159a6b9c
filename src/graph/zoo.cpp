#include "graph/zoo.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::models {

std::int64_t classes_of(const Attributes& attributes, const ModelContext& context) {
  if (attributes.has("classes")) return attributes.integer("classes");
  if (context.classes > 0) return context.classes;
  throw Error(ExitCode::configuration, "classes: the data set names no classes; say how many the model has");
}

std::int64_t vocabulary_of(const Attributes& attributes, const ModelContext& context, const std::string& model) {
  if (attributes.has("vocabulary")) return attributes.integer("vocabulary");
  if (context.vocabulary > 0) return context.vocabulary;
  throw Error(ExitCode::configuration,
              model + ": vocabulary: the data set has none; train on text or tokens, or give it");
}

void require_sides(const std::string& model, const TensorSpec& image, std::int64_t multiple, std::int64_t depth) {
  const Shape& shape = image.shape;
  if (shape.size() == 4 && shape[1] > 0 && shape[2] > 0 && shape[1] % multiple == 0 && shape[2] % multiple == 0) return;
  throw Error(ExitCode::configuration,
              fmt::format("{}: expected images [batch, height, width, channels] whose sides are multiples of {}, for a "
                          "depth of {}, found {}; set `depth`, or resize the images",
                          model, multiple, depth, to_string(shape)));
}

AttributeSpec optional_size(const std::string& name, const std::string& doc) {
  return {.name = name, .doc = doc, .optional = true, .minimum = 1};
}

ValueId only_input(const ModelContext& context, const std::string& model) {
  if (context.inputs.size() != 1) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected a data set with one input, found {}; write the model "
                            "as `layers:` with `inputs:`",
                            model, context.inputs.size()));
  }
  return context.inputs[0].second;
}

}  // namespace lockstep::models
