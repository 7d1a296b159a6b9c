// A custom schedule: the learning rate falls to 0 with a power of the remaining part of the run.
#include <lockstep/schedule.hpp>

#include <cmath>

#include "example.hpp"

namespace {

using namespace lockstep;

ScheduleDef polynomial() {
  ScheduleDef polynomial;
  polynomial.name = "polynomial";
  polynomial.doc = "falls to 0 along a power of what is left of the run";
  polynomial.attributes = {{.name = "power",
                            .kind = AttributeKind::number,
                            .doc = "1: a straight line",
                            .default_value = 2.0,
                            .minimum = 0}};
  polynomial.shorthand = "power";  // `schedule: {polynomial: 2}`
  polynomial.rate = [](const Attributes& settings, const ScheduleStep& at) {
    return at.peak * std::pow(1 - at.progress, settings.number("power"));
  };
  return polynomial;
}

}  // namespace

int main() {
  return run_example([] {
    Registries registries = Registries::built_in();
    registries.schedules.add(polynomial());
    const JobFile job = digits(registries, {"learning_rate={peak: 0.01, schedule: {polynomial: 1.5}}"});
    return same_bits([&](Communicator& communicator) { return train_job(job, communicator, registries); });
  });
}
