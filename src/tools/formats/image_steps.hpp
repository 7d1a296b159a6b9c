// What transformers does to an image before its model sees it, as lines of a job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::formats {

/// `prepare` and `normalize` of `data`, by the folder's preprocessor_config.json; without that file the images are
/// resized only. `size`: the side of the images that the model reads. Throws Error(data) for what lockstep cannot do,
/// and for steps that end with another size. `warnings` gets what is done otherwise here.
[[nodiscard]] std::string image_steps(const std::string& folder, std::int64_t size, std::int64_t channels,
                                      std::vector<std::string>& warnings);

}  // namespace lockstep::formats
