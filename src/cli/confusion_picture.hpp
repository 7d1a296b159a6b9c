// A confusion matrix as pixels, for TensorBoard.
#pragma once

#include "cli/evaluation_details.hpp"
#include "data/picture.hpp"

namespace lockstep::cli {

/// A row for each class, a column for what it is taken for; the darker a cell, the larger its share of the row. Names
/// stand at the left, the first letters of them.
[[nodiscard]] data::Picture confusion_picture(const EvaluationDetails& details);

}  // namespace lockstep::cli
