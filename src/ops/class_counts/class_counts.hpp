// Metrics that are means over classes: macro_precision, macro_recall, macro_f1 and mean_iou. A sample leaves, for each
// class, how many of its rows are rightly of the class, are predicted to be, and are: whole numbers, exact in a float
// up to 2^24 rows a sample. Only what is made of their sums differs. The predicted class is the best one; of equal
// scores, that of the lower index.
#pragma once

#include <cstdint>

namespace lockstep::ops {

/// The counts of a sample, each for all classes.
inline constexpr std::int64_t kRight = 0, kPredicted = 1, kActual = 2, kClassCounts = 3;

}  // namespace lockstep::ops
