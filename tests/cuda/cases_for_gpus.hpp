// Which cases of ops are computed on GPUs, and how others are made of them: of so many rows, or such wide ones, that
// all code of a kernel is run.
#pragma once

#include <optional>

#include "ops/op_driver.hpp"

namespace lockstep::ops {

/// Of the cases as they are written those that are not timed, or products' timed ones, too; or others that are made
/// of them.
enum class GpuCases : std::uint8_t {
  all_but_timed,
  with_timed_products,
  of_few_timed,  ///< timed ones of few elements: wide where a case with finite differences can't be
  of_many_rows,
  of_levels_of_rows,  ///< so many that sums over them have three levels, each with a rest of rows
  of_wide_rows,       ///< many elements in the last dimension
  of_long_sequences,  ///< in the last but one
  for_inference
};

/// None: there is no such case. Convolutions of many channels, and long images, are left out: they would take minutes.
[[nodiscard]] std::optional<OpCase> made_of(const OpDef& op, const OpCase& written, GpuCases which);
/// None: what was made of a case has sizes that the op refuses.
[[nodiscard]] std::optional<Problem> problem_of(const OpDef& op, const OpCase& one, GpuCases which);

}  // namespace lockstep::ops
