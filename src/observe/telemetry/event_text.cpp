#include "observe/telemetry/event_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <sstream>
#include <string>

#include "observe/telemetry/event_schema.hpp"
#include "observe/telemetry/text.hpp"

namespace lockstep::telemetry {
namespace {

/// All fields that have a value, except `known`, as "name value".
template <class Kind>
std::string fields_text(const Kind& event, std::initializer_list<const char*> known = {}) {
  Line line;
  const auto add = [&](const char* name, const auto& value, events::Unit unit) {
    line.add(fmt::format("{} {}", spaced(name), to_text(value, unit)));
  };
  for_each_field(event, [&](const std::string& name, const auto& value, events::Unit unit) {
    if (std::find(known.begin(), known.end(), name) != known.end()) return;
    if constexpr (requires { value.has_value(); }) {
      if (value) add(name.c_str(), *value, unit);
    } else {
      add(name.c_str(), value, unit);
    }
  });
  return line.text();
}

/// "2,000 samples, 500 for validation"
std::string data_text(const events::Start& start) {
  const std::string samples = counted(start.samples, "sample");
  return start.validation_samples == 0
             ? samples
             : fmt::format("{}, {} for validation", samples, grouped(start.validation_samples));
}

std::string text_of(const events::Start& start, const Palette& palette, std::int64_t /*steps*/) {
  std::string text = fmt::format("lockstep {}  {}{}{}", start.version, palette.strong, start.job, palette.reset);
  const auto row = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format("\n  {}{:<7}{}{}", palette.quiet, name, value, palette.reset);
  };
  row("model", counted(start.parameters, "parameter") +
                   (start.trained ? fmt::format(", of which {} are trained", grouped(*start.trained)) : ""));
  row("values", start.initialized.value_or(""));
  row("data", data_text(start));
  row("plugin", start.plugins.value_or(""));
  row("loss", start.weights ? "weights " + *start.weights : "");
  row("inputs", start.inputs.value_or(""));
  row("length", fmt::format("{} of {}, {} epoch{}", counted(start.steps, "step"), counted(start.batch_size, "sample"),
                            short_number(start.epochs), start.epochs == 1 ? "" : "s"));
  row("ranks", fmt::format("{} on {}, {} each, {}", grouped(start.ranks), counted(start.hosts, "host"),
                           counted(start.threads, "thread"), counted(start.micro_batches, "micro-batch")));
  row("", start.micro_batches_chosen.value_or(""));
  row("device", start.device);
  row("run", start.run_directory.value_or(""));
  row("exact", start.exactness == "bitwise" ? "" : start.exactness);
  row("also", start.index ? "index " + *start.index : "");
  return text;
}

/// "  parts  part 0 on ranks 0 1: stem to block2.add, 12,345 parameters"; for later parts without the first word.
std::string text_of(const events::Part& part, const Palette& palette, std::int64_t /*steps*/) {
  return fmt::format("  {}{:<7}{}{}", palette.quiet, part.part == 0 ? "parts" : "", part_text(part), palette.reset);
}

/// "  gpu    rank 1 on node7: NVIDIA H100 80GB HBM3, 79.6 GiB, ..."
std::string text_of(const events::Gpu& gpu, const Palette& palette, std::int64_t /*steps*/) {
  Line line(", ");
  line.add(fmt::format("rank {} on {}: {}", gpu.rank, gpu.host, gpu.model));
  line.add(fmt::format("{:.1f} GiB", static_cast<double>(gpu.memory_bytes) / (1 << 30)));
  line.add("compute capability " + gpu.compute_capability);
  const auto clock = [&](std::int64_t megahertz) {
    return megahertz > 0 ? fmt::format(" at {} MHz", megahertz) : std::string();
  };
  line.add(counted(gpu.multiprocessors, "multiprocessor") + clock(gpu.clock_mhz));
  if (gpu.memory_clock_mhz > 0) line.add("memory" + clock(gpu.memory_clock_mhz));
  line.add(gpu.pci_bus);
  line.add("driver " + driver_text(gpu.driver_version.value_or(""), gpu.driver));
  return fmt::format("  {}{:<7}{}{}", palette.quiet, "gpu", line.text(), palette.reset);
}

std::string text_of(const events::Step& step, const Palette& /*palette*/, std::int64_t steps) {
  return step_columns(step.step, steps, "") + fields_text(step, {"step"});
}

std::string text_of(const events::Evaluation& eval, const Palette& palette, std::int64_t steps) {
  auto metrics = eval.metrics;
  metrics["loss"] = eval.loss;
  return step_columns(eval.step, steps, eval.set, palette.strong, palette.reset) + metrics_text(std::move(metrics));
}

std::string text_of(const events::Checkpoint& checkpoint, const Palette& palette, std::int64_t steps) {
  Line line;
  line.add(checkpoint.path);
  if (checkpoint.best) line.add("best by " + *checkpoint.best);
  return palette.quiet + step_columns(checkpoint.step, steps, "checkpoint") + line.text() + palette.reset;
}

std::string text_of(const events::Copy& copy, const Palette& palette, std::int64_t steps) {
  const std::string what = copy.fetched ? "fetched" : "copied";
  return palette.quiet + step_columns(copy.step, steps, what) + (copy.fetched ? "from " : "to ") + copy.path +
         palette.reset;
}

std::string text_of(const events::Goodput& /*goodput*/, const Palette& /*palette*/, std::int64_t /*steps*/) {
  return "";  // for reports and dashboards
}

std::string text_of(const events::Restart& restart, const Palette& /*palette*/, std::int64_t steps) {
  if (restart.path) {
    return step_columns(restart.step, steps, "resumed") + "from " + *restart.path +
           (restart.message ? ", with " + *restart.message : "");
  }
  Line line;
  line.add(restart.message.value_or(""));
  line.add(fields_text(restart, {"message", "step"}));
  return step_columns(restart.step, steps, "restart") + line.text();
}

std::string warning(const std::string& message, const Palette& palette) {
  return fmt::format("{}warning:{} {}", palette.warn, palette.reset, message);
}

std::string text_of(const events::BadSample& sample, const Palette& palette, std::int64_t /*steps*/) {
  return warning(sample.message, palette);
}

std::string text_of(const events::Warning& event, const Palette& palette, std::int64_t /*steps*/) {
  return warning(event.message, palette);
}

std::string text_of(const events::Balance& balance, const Palette& /*palette*/, std::int64_t /*steps*/) {
  return "balance:  " + fields_text(balance);
}

std::string text_of(const events::Launch& launch, const Palette& /*palette*/, std::int64_t /*steps*/) {
  return "launch:  " + fields_text(launch);
}

std::string text_of(const events::End& end, const Palette& palette, std::int64_t steps) {
  return end_text(end, palette, steps);
}

}  // namespace

Palette make_palette(bool color) {
  if (!color) return {};
  return {"\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[33m", "\x1b[0m"};
}

std::string step_columns(std::int64_t step, std::int64_t steps, const std::string& what, const char* style,
                         const char* reset) {
  std::string number = grouped(step);
  if (steps > 0) {
    const std::string total = grouped(steps);
    number = fmt::format("{:>{}}/{}", number, total.size(), total);
  }
  return fmt::format("step {}  {}{:<10}{}  ", number, style, what, reset);
}

std::string metrics_text(events::ByName metrics) {
  Line line;
  if (const auto loss = metrics.extract("loss")) line.add("loss " + fixed_number(loss.mapped()));
  for (const auto& [name, value] : metrics) line.add(fmt::format("{} {}", spaced(name), fixed_number(value)));
  return line.text();
}

std::vector<int> ranks_of(const events::Part& part) {
  std::vector<int> ranks;
  std::istringstream words(part.ranks);
  for (int rank = 0; words >> rank;) ranks.push_back(rank);
  return ranks;
}

std::string part_text(const events::Part& part) {
  return fmt::format("part {} on rank{} {}: {} to {}, {}", part.part,
                     part.ranks.find(' ') == std::string::npos ? "" : "s", part.ranks, part.first, part.last,
                     counted(part.parameters, "parameter"));
}

std::string event_text(const events::Event& event, const Palette& palette, std::int64_t steps) {
  return std::visit([&](const auto& kind) { return text_of(kind, palette, steps); }, event);
}

}  // namespace lockstep::telemetry
