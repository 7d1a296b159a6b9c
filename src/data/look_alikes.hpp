// Names of classes and categories that are different and yet look the same.
#pragma once

#include <string>
#include <vector>

#include "lockstep/data_set.hpp"

namespace lockstep::data {

/// A warning for the classes and for each column, if two of their names differ only in what no reader sees: composed
/// and decomposed letters, spaces, characters without width; or in capitals.
[[nodiscard]] std::vector<std::string> look_alikes(const DataSetInfo& info);

}  // namespace lockstep::data
