// Rules for single values under `data`: class weights and folds.
#pragma once

#include "config/rule.hpp"
#include "lockstep/job.hpp"

namespace lockstep::config {

/// `balanced`, {cat: 2, dog: 0.5}, or [1, 2].
[[nodiscard]] Is<ClassWeightOptions> class_weights_rule();
/// "2 of 5"
[[nodiscard]] Is<Fold> fold_rule();

}  // namespace lockstep::config
