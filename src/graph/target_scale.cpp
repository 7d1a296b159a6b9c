#include "graph/target_scale.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <functional>

namespace lockstep {

namespace {

// Numbers that are far from 0 have few digits left in low precision, and one in fp16 may be too large for it.
ValueId exact_layer(GraphBuilder& builder, const std::string& op, const std::vector<ValueId>& inputs,
                    const Attributes& attributes, const std::string& name) {
  const ValueId id = builder.apply(op, inputs, attributes, name);
  builder.graph().values[id].exact = true;
  return id;
}

/// Each number of a sample by itself, made of layers that are there anyway: so they are exported, too.
using OfNumber = std::function<ValueId(ValueId value, std::size_t number, const std::string& name)>;
ValueId number_by_number(GraphBuilder& builder, ValueId value, const TargetScale& scale, const std::string& name,
                         const OfNumber& of) {
  if (scale.mean.size() == 1) return of(value, 0, name);
  std::vector<ValueId> parts;
  for (std::size_t i = 0; i < scale.mean.size(); ++i) {
    const std::string of_number = fmt::format("{} {}", name, i + 1);
    const Attributes one({{"begin", static_cast<std::int64_t>(i)}, {"end", static_cast<std::int64_t>(i + 1)}});
    parts.push_back(of(exact_layer(builder, "slice", {value}, one, of_number + " alone"), i, of_number));
  }
  return exact_layer(builder, "concat", parts, {}, name);
}

}  // namespace

// First the mean, since numbers may be far from 0 and near to one another.
ValueId normalized(GraphBuilder& builder, ValueId value, const TargetScale& scale, const std::string& name) {
  return number_by_number(
      builder, value, scale, name, [&](ValueId number, std::size_t i, const std::string& of_number) {
        const ValueId centred =
            exact_layer(builder, "scale", {number}, Attributes({{"factor", 1.0}, {"shift", -scale.mean[i]}}),
                        of_number + " less its mean");
        return exact_layer(builder, "scale", {centred}, Attributes({{"factor", 1 / scale.stddev[i]}}), of_number);
      });
}

ValueId in_units(GraphBuilder& builder, ValueId value, const TargetScale& scale, const std::string& name) {
  builder.graph().values[value].exact = true;  // the model's own prediction, as in training
  return number_by_number(
      builder, value, scale, name, [&](ValueId number, std::size_t i, const std::string& of_number) {
        return exact_layer(builder, "scale", {number},
                           Attributes({{"factor", scale.stddev[i]}, {"shift", scale.mean[i]}}), of_number);
      });
}

}  // namespace lockstep
