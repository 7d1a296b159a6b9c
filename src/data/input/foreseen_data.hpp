// What a job alone tells of its data, for those who look at a job where the data are not.
#pragma once

#include <string>

#include "data/input/prepared_data.hpp"
#include "lockstep/graph_builder.hpp"

namespace lockstep::input {

/// Whether the program draws all of the job's data, and reads no file.
[[nodiscard]] bool are_drawn(const DataOptions& wanted);

struct ForeseenData {
  PreparedData data;    ///< without samples
  std::string unknown;  ///< on which the model's shapes depend, such as "the columns of the table", and which only the
                        ///< data tell: then there is no `data`. Empty: nothing
};

/// `model` is the job's: what it says itself need not be known of the data. `registries` must outlive what is made with
/// them. Throws Error(configuration) for steps of augmentation that do not suit the samples.
[[nodiscard]] ForeseenData foresee_data(const DataOptions& wanted, const ModelOptions& model, std::uint64_t seed,
                                        const DataRegistries& registries, const ModelRegistry& models);

}  // namespace lockstep::input
