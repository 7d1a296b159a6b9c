// wsd: warm-up, stable, decay (Hu and others, "MiniCPM: Unveiling the Potential of Small Language Models with Scalable
// Training Strategies", 2024). The fall along 1 - sqrt(x) is that of Hägele and others, "Scaling Laws and
// Compute-Optimal Training Beyond Fixed Training Durations", NeurIPS 2024.
#include <cmath>
#include <numbers>

#include "lockstep/schedule.hpp"

namespace lockstep::optim {

namespace {

/// From 1 to 0 over x in 0 ... 1.
double left_of_peak(const std::string& form, double x) {
  if (form == "sqrt") return 1 - std::sqrt(x);
  if (form == "cosine") return 0.5 * (1 + std::cos(std::numbers::pi * x));
  return 1 - x;
}

double rate_of_wsd(const Attributes& settings, const ScheduleStep& at) {
  const double decay = settings.number("decay"), final = settings.number("final");
  const double over = at.progress - (1 - decay);
  if (over <= 0) return at.peak;
  return final + (at.peak - final) * left_of_peak(settings.text("form"), over / decay);
}

}  // namespace

ScheduleDef make_wsd() {
  ScheduleDef wsd;
  wsd.name = "wsd";
  wsd.doc = "warm-up, stable, decay: the peak, and a fall at the end";
  wsd.order = 9;
  wsd.attributes = {
      {.name = "decay",
       .kind = AttributeKind::number,
       .doc = "share of the steps after the warm-up in which the rate falls",
       .default_value = 0.1,
       .minimum = 0,
       .maximum = 1,
       .above_minimum = true},
      {.name = "form",
       .kind = AttributeKind::text,
       .doc = "sqrt: along 1 - sqrt(x)",
       .default_value = std::string("linear"),
       .choices = {"linear", "cosine", "sqrt"}},
      {.name = "final",
       .kind = AttributeKind::number,
       .doc = "the rate at the end",
       .default_value = 0.0,
       .minimum = 0},
  };
  wsd.rate = rate_of_wsd;
  return wsd;
}

}  // namespace lockstep::optim
