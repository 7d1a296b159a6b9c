// How often to write a checkpoint, by formula: for failures that come at random (exponential times between them), all
// of which send the whole run back to the newest checkpoint.
//
// Sources: J. W. Young, "A first order approximation to the optimum checkpoint interval", Communications of the ACM
// 17(9), 1974; J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future
// Generation Computer Systems 22(3), 2006.
//
// Both take a checkpoint for safe as soon as training goes on. One that is safe S seconds later makes each failure cost
// S more, whatever the interval: neither optimum moves, as long as it is longer than S.
#pragma once

namespace lockstep::bench {

/// The Young/Daly formula, sqrt(2 C M): seconds of steps between two checkpoints that each take C seconds, where the
/// job fails every M seconds. Good where C is much less than M. Infinity where nothing fails (M is 0).
[[nodiscard]] double young_daly_interval(double checkpoint_seconds, double mtbf_seconds);

/// Daly's expected time of a run, M e^(R/M) (e^((w + C)/M) - 1) for each w seconds of steps; a restart takes R, and may
/// itself be hit by a failure.
[[nodiscard]] double expected_run_seconds(double steps_seconds, double interval_seconds, double checkpoint_seconds,
                                          double restart_seconds, double mtbf_seconds);

/// The interval with which that is shortest.
[[nodiscard]] double best_interval(double checkpoint_seconds, double mtbf_seconds);

}  // namespace lockstep::bench
