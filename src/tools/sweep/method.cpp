#include "tools/sweep/method.hpp"

namespace lockstep::sweep {

std::unique_ptr<Method> make_method(const SweepOptions& options) {
  switch (options.method) {
    case SearchMethod::grid:
      return make_grid(options);
    case SearchMethod::halving:
      return make_halving(options);
    case SearchMethod::tpe:
      return make_tpe();
    case SearchMethod::population:
      return make_population(options);
    case SearchMethod::random:
      break;
  }
  return make_random();
}

}  // namespace lockstep::sweep
