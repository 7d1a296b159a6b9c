#include "cuda/cases_for_gpus.hpp"

#include <algorithm>

#include "device/gpu/grid.hpp"
#include "device/row_blocks.hpp"
#include "lockstep/error.hpp"

namespace lockstep::ops {

namespace {

constexpr std::int64_t kFewElements = 10'000, kFewOfLosses = 250'000;  // of losses all, those of vocabularies, too

bool is_wanted(const OpDef& op, const OpCase& written, GpuCases which) {
  if (which == GpuCases::of_few_timed) {
    const std::int64_t most = op.kind == OpKind::loss ? kFewOfLosses : kFewElements;
    return written.benchmark && elements(written.inputs.at(0).shape) <= most;
  }
  return !written.benchmark || (which == GpuCases::with_timed_products && op.multiplies);
}

bool is_of_rank(const OpCase& one, std::size_t rank) {
  return !one.inputs.empty() && one.inputs[0].shape.size() == rank;
}

/// With so many rows that a thread of a kernel over elements has all of the elements that it may take; and, where
/// rows add up to that, with an end at which some threads of a warp have all of them and others lack the last.
OpCase with_many_rows(const OpDef& op, OpCase one) {
  constexpr std::int64_t kBlock = device::kAhead * device::kBlockThreads,
                         kAllButTheLast = (device::kAhead - 1) * device::kBlockThreads,
                         kElements = kBlock + kAllButTheLast, kSamplesOfPairs = 300;
  if (one.inputs.empty() || one.inputs[0].shape.empty()) return one;
  const std::int64_t few = std::max<std::int64_t>(elements(one.inputs[0].shape), 1);
  std::int64_t factor = kElements / few + 1;
  const std::int64_t most = factor * 2;
  while (factor < most && few * factor % kBlock <= kAllButTheLast) ++factor;
  if (op.name == "contrastive") {  // it computes something for each pair of samples
    factor = std::min(factor, kSamplesOfPairs / std::max<std::int64_t>(one.inputs[0].shape[0], 1) + 1);
  }
  for (TensorSpec& input : one.inputs) {
    if (!input.shape.empty()) input.shape[0] *= factor;
  }
  return one;
}

/// The last sum of each level is of as many rows as a thread reads at once (RowElements::kRowsAtOnce) and 7 more.
OpCase with_levels_of_rows(OpCase one) {
  constexpr std::int64_t kSums = 16 + 7, kLevel = device::kBlockRows,
                         kRows = ((kSums - 1) * kLevel + kSums - 1) * kLevel + kSums;
  const std::int64_t few = one.inputs[0].shape[0];
  for (TensorSpec& input : one.inputs) {
    if (!input.shape.empty() && input.shape[0] == few) input.shape[0] = kRows;
  }
  return one;
}
/// Whether it is small enough for that, of an op that adds up its parameters' gradients over rows.
bool adds_rows(const OpDef& op, const OpCase& one) {
  constexpr std::int64_t kColumns = 7;
  if (op.multiplies || !is_of_rank(one, 2) || one.inputs[0].shape[0] == 0 || one.inputs[0].shape[1] > kColumns)
    return false;
  return one.mode == Mode::training && !make_problem(op, one).parameters.empty();
}

/// With so much in a dimension, counted from the last, that a lane of a kernel over rows has more than it reads at
/// once, and, where elements add up to that, some lanes read at once again while the others lack the last element for
/// that; of samples there are few. Inputs that agree with the first go on agreeing.
OpCase with_more_in(OpCase one, std::size_t from_last) {
  constexpr std::int64_t kMuch = 140, kSamples = 2, kAtOnce = device::kAhead * device::kGroupLanes,
                         kMost = (device::kAhead - 1) * device::kGroupLanes;
  if (one.inputs.empty() || one.inputs[0].shape.size() <= from_last + 1) return one;
  const std::size_t at = one.inputs[0].shape.size() - 1 - from_last;
  const std::int64_t little = std::max<std::int64_t>(one.inputs[0].shape[at], 1);
  std::int64_t factor = (kMuch - 1) / little + 1;
  const std::int64_t most = from_last == 0 ? factor * 2 : factor;  // longer sequences would take minutes
  while (factor < most && little * factor % kAtOnce < kMost) ++factor;
  for (TensorSpec& input : one.inputs) {
    if (input.shape.size() > at && input.shape[at] == little) input.shape[at] *= factor;
    if (!input.shape.empty()) input.shape[0] = std::min(input.shape[0], kSamples);
  }
  return one;
}

}  // namespace

std::optional<OpCase> made_of(const OpDef& op, const OpCase& written, GpuCases which) {
  if (op.view || !is_wanted(op, written, which)) return std::nullopt;
  switch (which) {
    case GpuCases::of_many_rows:
      return op.multiplies && !is_of_rank(written, 2) ? std::nullopt : std::optional(with_many_rows(op, written));
    case GpuCases::of_levels_of_rows:
      return adds_rows(op, written) ? std::optional(with_levels_of_rows(written)) : std::nullopt;
    case GpuCases::of_wide_rows:
      return is_of_rank(written, 4) && op.multiplies ? std::nullopt : std::optional(with_more_in(written, 0));
    case GpuCases::of_long_sequences:
      return is_of_rank(written, 3) ? std::optional(with_more_in(written, 1)) : std::nullopt;
    case GpuCases::for_inference: {
      OpCase one = op.multiplies ? written : with_many_rows(op, written);
      one.mode = Mode::inference;
      return one;
    }
    default:
      return written;
  }
}

std::optional<Problem> problem_of(const OpDef& op, const OpCase& one, GpuCases which) {
  try {
    return make_problem(op, one);
  } catch (const Error&) {
    if (which != GpuCases::of_wide_rows && which != GpuCases::of_long_sequences) throw;
    return std::nullopt;
  }
}

}  // namespace lockstep::ops
