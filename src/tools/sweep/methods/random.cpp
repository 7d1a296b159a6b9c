// Random search: each value of each trial is a function of the seed, the parameter's path and the trial's number.
// Source: Bergstra and Bengio, "Random search for hyper-parameter optimization", JMLR 2012.
#include "tools/sweep/method.hpp"

namespace lockstep::sweep {

namespace {

class Random : public Method {
 public:
  Decision ask(const Study& study) const override {
    if (!study.may_begin()) return Stop{};
    return Begin{random_settings(study.options(), study.trials().size()), 0};
  }
};

}  // namespace

std::unique_ptr<Method> make_random() {
  return std::make_unique<Random>();
}

Settings random_settings(const SweepOptions& options, int trial) {
  return draw(options.parameters,
              [&](const SweepParameter& parameter) { return uniform(options.seed, parameter.path, trial); });
}

}  // namespace lockstep::sweep
