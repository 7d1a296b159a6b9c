// precision: fp32 | tf32 | bf16 | fp16 | {fp16: {loss_scale: dynamic, initial_scale: 65536, growth_interval: 2000}}
#include <fmt/format.h>

#include <bit>

#include "config/scalar_rules.hpp"
#include "config/sections.hpp"

namespace lockstep::config {
namespace {

constexpr std::int64_t kLargestScale = std::int64_t{1} << 24;

Number scale() {
  return number().at_least(1).at_most(kLargestScale);
}

void check_scale(const Scope& scope, const std::string& key, std::int64_t value) {
  const std::uint64_t bits = value;
  if (value == 0 || std::has_single_bit(bits)) return;
  scope.problem(key, fmt::format("expected a power of two, found {}; try {} or {}", value, std::bit_floor(bits),
                                 std::bit_ceil(bits)));
}

bool is_dynamic(const LossScaleOptions& options) {
  return options.fixed == 0;
}

/// A fixed scale has no use for the settings of a dynamic one.
void check_use(const LossScaleOptions& options, const Scope& scope) {
  for (const char* key : {"initial_scale", "growth_interval"}) {
    if (is_dynamic(options) || !scope.written(key)) continue;
    scope.problem(key, fmt::format("expected loss_scale: dynamic, which it belongs to, found loss_scale: {}; leave out "
                                   "{}",
                                   options.fixed, key));
  }
}

Section<LossScaleOptions> fp16() {
  return Section<LossScaleOptions>()
      .field("loss_scale", &LossScaleOptions::fixed, scale().word("dynamic", 0),
             "power of two for float16 gradients; dynamic: the largest that keeps them finite")
      .field("initial_scale", &LossScaleOptions::initial, scale(), "dynamic: the first scale, a power of two")
      .written_if(is_dynamic)
      .field("growth_interval", &LossScaleOptions::growth_interval, number().at_least(1),
             "dynamic: updates without an overflow before the scale is doubled")
      .written_if(is_dynamic)
      .check({"loss_scale"},
             [](const LossScaleOptions& o, const Scope& scope) { check_scale(scope, "loss_scale", o.fixed); })
      .check({"initial_scale"},
             [](const LossScaleOptions& o, const Scope& scope) { check_scale(scope, "initial_scale", o.initial); })
      .check({"loss_scale", "initial_scale", "growth_interval"}, check_use);
}

}  // namespace

Is<Job> precision_section() {
  return Section<Job>()
      .word(Precision::fp32, &Job::precision)
      .word(Precision::tf32, &Job::precision)
      .word(Precision::bf16, &Job::precision)
      .field("fp16", &Job::loss_scale, fp16(), "float16, with a scaled loss")
      .alternative(Precision::fp16, &Job::precision);
}

}  // namespace lockstep::config
