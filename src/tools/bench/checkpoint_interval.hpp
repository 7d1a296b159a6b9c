// Formulas for how often to write a checkpoint, if failures come at random (exponential times between them) and each
// one sends the whole run back to the newest checkpoint.
//
// Sources: J. W. Young, "A first order approximation to the optimum checkpoint interval", Communications of the ACM
// 17(9), 1974; J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future
// Generation Computer Systems 22(3), 2006.
//
// Both assume that a checkpoint is safe as soon as training continues. If it becomes safe S seconds later, each failure
// costs S more, whatever the interval: the optimum does not move as long as the interval is longer than S.
#pragma once

namespace lockstep::bench {

/// The Young/Daly formula, sqrt(2 C M): seconds of steps between two checkpoints that take C seconds each, if the job
/// fails every M seconds. Accurate if C is much less than M. Infinity if nothing fails (M is 0).
[[nodiscard]] double young_daly_interval(double checkpoint_seconds, double mtbf_seconds);

/// Daly's expected duration of a run: M e^(R/M) (e^((w + C)/M) - 1) for each w seconds of steps; a restart takes R, and
/// may itself be hit by a failure.
[[nodiscard]] double expected_run_seconds(double steps_seconds, double interval_seconds, double checkpoint_seconds,
                                          double restart_seconds, double mtbf_seconds);

/// The interval that minimizes expected_run_seconds().
[[nodiscard]] double best_interval(double checkpoint_seconds, double mtbf_seconds);

}  // namespace lockstep::bench
