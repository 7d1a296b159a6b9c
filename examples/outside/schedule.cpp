// A custom schedule: after the warm-up the learning rate falls with the inverse root of the steps (Vaswani and others,
// "Attention Is All You Need", 2017).
#include <lockstep/schedule.hpp>

#include <cmath>

#include "example.hpp"

namespace {

using namespace lockstep;

ScheduleDef inverse_root() {
  ScheduleDef inverse_root;
  inverse_root.name = "inverse_root";
  inverse_root.doc = "falls as one over the root of the steps";
  inverse_root.attributes = {{.name = "scale",
                              .kind = AttributeKind::integer,
                              .doc = "after three times as many steps the rate is half of the peak",
                              .default_value = std::int64_t{100},
                              .minimum = 1}};
  inverse_root.shorthand = "scale";  // `schedule: {inverse_root: 100}`
  inverse_root.rate = [](const Attributes& settings, const ScheduleStep& at) {
    const double past = static_cast<double>(at.since_warmup) / static_cast<double>(settings.integer("scale"));
    return at.peak / std::sqrt(1 + past);
  };
  return inverse_root;
}

}  // namespace

int main() {
  return run_example([] {
    Registries registries = Registries::built_in();
    registries.schedules.add(inverse_root());
    const JobFile job = digits(registries, {"learning_rate={peak: 0.01, schedule: {inverse_root: 20}}"});
    return same_bits([&](Communicator& communicator) { return train_job(job, communicator, registries); });
  });
}
