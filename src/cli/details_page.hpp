// The details of an evaluation as a part of a run's page.
#pragma once

#include <string>

#include "cli/evaluation_details.hpp"

namespace lockstep::cli {

/// HTML: the confusion matrix, a table of the classes or values, and the worst samples with their images.
[[nodiscard]] std::string details_section(const EvaluationDetails& details);

}  // namespace lockstep::cli
