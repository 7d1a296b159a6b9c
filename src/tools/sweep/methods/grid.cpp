// Grid search: every combination of values once; the last parameter varies fastest.
#include "tools/sweep/method.hpp"

namespace lockstep::sweep {

namespace {

class Grid : public Method {
 public:
  explicit Grid(const SweepOptions& options) : points_(grid(options.parameters)) {}

  Decision ask(const Study& study) const override {
    const std::size_t next = study.trials().size();
    if (next >= points_.size() || !study.may_begin()) return Stop{};
    return Begin{points_[next], 0};
  }

 private:
  std::vector<Settings> points_;
};

}  // namespace

std::unique_ptr<Method> make_grid(const SweepOptions& options) {
  return std::make_unique<Grid>(options);
}

}  // namespace lockstep::sweep
