// Sweeps for tests of the room.
#pragma once

#include <string>

#include "config/sweep.hpp"

namespace lockstep::sweep {

inline SweepParameter choice(const std::string& path, std::vector<std::string> values) {
  SweepParameter p;
  p.path = path;
  p.choices = std::move(values);
  return p;
}

inline SweepParameter range(const std::string& path, Distribution distribution, double low, double high) {
  SweepParameter p;
  p.path = path;
  p.distribution = distribution;
  p.low = low;
  p.high = high;
  return p;
}

/// sgd with momentum, or adam; a learning rate.
inline SweepOptions small_sweep() {
  SweepOptions sweep;
  sweep.name = "small";
  sweep.metric = "accuracy";
  sweep.direction = Direction::maximize;
  sweep.budget.trials = 6;
  sweep.parameters = {choice("optimizer", {"\"sgd\"", "\"adam\""}),
                      range("optimizer.sgd.momentum", Distribution::uniform, 0, 0.9),
                      range("learning_rate", Distribution::log_uniform, 0.001, 0.1)};
  sweep.parameters[1].when = {{"optimizer", {"\"sgd\""}}};
  sweep.parameters[1].points = 3;
  sweep.parameters[2].points = 3;
  return sweep;
}

}  // namespace lockstep::sweep
