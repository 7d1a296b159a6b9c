// Events as text.
//
// Events of a step begin with columns: "step  31/100  validation  loss 1.4923  accuracy 0.5360".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/events.hpp"

namespace lockstep::telemetry {

/// Escape sequences, or nothing if colours are off.
struct Palette {
  const char* strong = "";
  const char* quiet = "";
  const char* good = "";
  const char* warn = "";
  const char* reset = "";
};

[[nodiscard]] Palette make_palette(bool color);

/// "step  31/100  validation  ", both parts padded to their maximum width; `steps` 0: unknown.
[[nodiscard]] std::string step_columns(std::int64_t step, std::int64_t steps, const std::string& what,
                                       const char* style = "", const char* reset = "");

/// "loss 0.1234  accuracy 0.97": the loss, if present, comes first.
[[nodiscard]] std::string metrics_text(events::ByName metrics);

/// The ranks in its text.
[[nodiscard]] std::vector<int> ranks_of(const events::Part& part);

/// "part 0 on ranks 0 1: stem to block2.add, 12,345 parameters"
[[nodiscard]] std::string part_text(const events::Part& part);

/// Any event except `step`; lines without the last newline. `steps`: of the whole run; 0: unknown.
[[nodiscard]] std::string event_text(const events::Event& event, const Palette& palette, std::int64_t steps = 0);

/// The `end` event.
[[nodiscard]] std::string end_text(const events::End& end, const Palette& palette, std::int64_t steps);

/// GPUs as a table, one row each; lines without the last newline. Columns without any known value are left out.
[[nodiscard]] std::string gpu_table(const std::vector<events::Gpu>& gpus, const Palette& palette);

}  // namespace lockstep::telemetry
