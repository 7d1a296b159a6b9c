// Some samples of another data set, in an order of their own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/data_set.hpp"

namespace lockstep::data {

/// `ids` are the whole set's. Counts of classes and the digest are the view's own.
[[nodiscard]] std::unique_ptr<DataSet> make_view(std::shared_ptr<const DataSet> whole, std::vector<std::int64_t> ids);

}  // namespace lockstep::data
