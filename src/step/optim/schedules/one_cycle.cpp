// one_cycle: Smith and Topin, "Super-Convergence: Very Fast Training of Neural Networks Using Large Learning Rates",
// 2018. As PyTorch's OneCycleLR in two phases, but that the momentum stays: the last step has the lowest rate, and the
// peak lies where `rise` of the steps are over, between two of them if need be.
#include <cmath>
#include <numbers>

#include "lockstep/schedule.hpp"

namespace lockstep::optim {

namespace {

double between(double from, double to, double share, bool cosine) {
  if (!cosine) return from + (to - from) * share;
  return to + (from - to) * 0.5 * (1 + std::cos(std::numbers::pi * share));
}

double rate_of_cycle(const Attributes& settings, const ScheduleStep& at) {
  const bool cosine = settings.text("anneal") == "cosine";
  const double first = at.peak / settings.number("start_divisor"), final = first / settings.number("final_divisor");
  const double last = at.length - 1;
  const double top = settings.number("rise") * at.length - 1;
  const double now = at.since_warmup;
  if (now < top) return between(first, at.peak, now / top, cosine);
  return between(at.peak, final, (now - top) / (last - top), cosine);
}

}  // namespace

ScheduleDef make_one_cycle() {
  ScheduleDef one_cycle;
  one_cycle.name = "one_cycle";
  one_cycle.doc = "a rise to the peak and a fall far below the start";
  one_cycle.order = 7;
  const auto divisor = [](const std::string& name, double value, const std::string& doc) {
    return AttributeSpec{.name = name, .kind = AttributeKind::number, .doc = doc, .default_value = value, .minimum = 1};
  };
  one_cycle.attributes = {
      {.name = "rise",
       .kind = AttributeKind::number,
       .doc = "share of the steps in which the rate rises",
       .default_value = 0.3,
       .minimum = 0,
       .maximum = 1,
       .below_maximum = true},
      divisor("start_divisor", 25, "the peak over this is the first rate"),
      divisor("final_divisor", 1e4, "the first rate over this is the last one"),
      {.name = "anneal",
       .kind = AttributeKind::text,
       .doc = "form of both",
       .default_value = std::string("cosine"),
       .choices = {"cosine", "linear"}},
  };
  one_cycle.rate = rate_of_cycle;
  return one_cycle;
}

}  // namespace lockstep::optim
