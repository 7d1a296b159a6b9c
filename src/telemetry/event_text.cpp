#include "telemetry/event_text.hpp"

#include <fmt/format.h>

#include <cmath>

#include "telemetry/event_fields.hpp"
#include "telemetry/text.hpp"

namespace lockstep::telemetry {
namespace {

/// "2,000 samples, 500 for validation"
std::string data_text(Fields& fields) {
  Line line(", ");
  if (fields.has("samples")) line.add(counted(fields.take("samples"), "sample"));
  const std::string validation = fields.take("validation_samples");
  if (!validation.empty() && validation != "0") line.add(validation + " for validation");
  return line.text();
}

/// "100 steps of 64 samples, 3.226 epochs"
std::string length_text(Fields& fields) {
  Line line(", ");
  std::string steps;
  if (fields.has("steps")) steps = counted(fields.take("steps"), "step");
  if (fields.has("batch_size")) steps += fmt::format(" of {}", counted(fields.take("batch_size"), "sample"));
  line.add(steps);
  if (fields.has("epochs")) line.add(counted(fields.take("epochs"), "epoch"));
  return line.text();
}

/// "2 on 1 host, 1 thread each, 8 shards"
std::string ranks_text(Fields& fields) {
  Line line(", ");
  std::string ranks = fields.take("ranks");
  if (fields.has("hosts")) ranks += fmt::format(" on {}", counted(fields.take("hosts"), "host"));
  line.add(ranks);
  if (fields.has("threads")) line.add(counted(fields.take("threads"), "thread") + " each");
  if (fields.has("shards")) line.add(counted(fields.take("shards"), "shard"));
  return line.text();
}

std::string start_text(Fields fields, const Palette& palette) {
  // For machines: what is of no use to who watches a run.
  for (const char* name : {"arena_bytes", "states", "seconds", "fingerprint", "algorithms", "first_shard_seconds"})
    fields.drop(name);
  const std::string exactness = fields.take("exactness");
  Line title;
  if (fields.has("version")) title.add("lockstep " + fields.take("version"));
  title.add(palette.strong + fields.take("job") + palette.reset);
  std::string text = title.text();
  const auto row = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format("\n  {}{:<7}{}{}", palette.quiet, name, value, palette.reset);
  };
  row("model", fields.has("parameters") ? counted(fields.take("parameters"), "parameter") : "");
  row("data", data_text(fields));
  row("inputs", fields.take("inputs"));
  row("length", length_text(fields));
  row("ranks", ranks_text(fields));
  row("", fields.take("shards_chosen"));
  row("device", fields.take("device"));
  row("exact", exactness == "bitwise" ? "" : exactness);
  Line rest;
  rest.add_rest(fields);
  row("also", rest.text());
  return text;
}

std::string eval_text(Fields fields, const Palette& palette, double steps) {
  const double step = fields.take_number("step");
  const std::string set = fields.has("set") ? fields.take("set") : "evaluation";
  auto metrics = fields.take_map("metrics");
  if (fields.has("loss")) metrics["loss"] = fields.take_number("loss");
  Line line;
  line.add_metrics(metrics);
  line.add_rest(fields);
  return step_columns(step, steps, set, palette.strong, palette.reset) + line.text();
}

std::string checkpoint_text(Fields fields, const Palette& palette, double steps) {
  const double step = fields.take_number("step");
  for (const char* detail : {"seconds", "blocked_seconds", "bytes"}) fields.drop(detail);  // for machines
  Line line;
  line.add(fields.take("path"));
  if (fields.has("best")) line.add("the best " + fields.take("best"));
  line.add_rest(fields);
  return palette.quiet + step_columns(step, steps, "checkpoint") + line.text() + palette.reset;
}

std::string restart_text(Fields fields, double steps) {
  const double step = fields.take_number("step");
  Line line;
  if (!fields.has("path")) {  // of the supervisor: why the ranks are started again
    line.add(fields.take("message"));
    line.add_rest(fields);
    return step_columns(step, steps, "restart") + line.text();
  }
  line.add("from " + fields.take("path"));
  line.add_rest(fields);
  return step_columns(step, steps, "going on") + line.text();
}

/// "  gpu    rank 1 on node7: NVIDIA H100 80GB HBM3, 79.6 GiB, ..."
std::string gpu_text(Fields fields, const Palette& palette) {
  Line line(", ");
  line.add(fmt::format("rank {} on {}: {}", fields.take("rank"), fields.take("host"), fields.take("model")));
  line.add(fmt::format("{:.1f} GiB", fields.take_number("memory_bytes") / (1 << 30)));
  line.add("compute capability " + fields.take("compute_capability"));
  const auto clock = [&](const char* name) {
    const double megahertz = fields.take_number(name);
    return megahertz > 0 ? fmt::format(" at {:.0f} MHz", megahertz) : std::string();
  };
  line.add(counted(fields.take("multiprocessors"), "multiprocessor") + clock("clock_mhz"));
  if (const std::string memory = clock("memory_clock_mhz"); !memory.empty()) line.add("memory" + memory);
  line.add(fields.take("pci_bus"));
  const std::string version = fields.take("driver_version");
  line.add("driver " + driver_text(version, fields.take("driver")));
  line.add_rest(fields);
  return fmt::format("  {}{:<7}{}{}", palette.quiet, "gpu", line.text(), palette.reset);
}

std::string other_text(const std::string& name, Fields fields, const Palette& palette) {
  Line line;
  if (name == "bad_sample") {  // the message has it all
    for (const char* field : {"step", "set", "sample", "name", "replaced_by", "replaced_by_name"}) fields.drop(field);
  }
  if (name == "warning" || name == "bad_sample") {
    line.add(fmt::format("{}warning:{} {}", palette.warn, palette.reset, fields.take("message")));
  } else {
    line.add(spaced(name) + ":");
  }
  line.add_rest(fields);
  return line.text();
}

}  // namespace

Palette make_palette(bool color) {
  if (!color) return {};
  return {"\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[33m", "\x1b[0m"};
}

std::string step_columns(double step, double steps, const std::string& what, const char* style, const char* reset) {
  std::string number = grouped(std::llround(step));
  if (steps > 0) {
    const std::string total = grouped(std::llround(steps));
    number = fmt::format("{:>{}}/{}", number, total.size(), total);
  }
  return fmt::format("step {}  {}{:<10}{}  ", number, style, what, reset);
}

std::string event_text(const std::string& name, const Record& record, const Palette& palette, double steps) {
  if (name == "start") return start_text(Fields(record), palette);
  if (name == "gpu") return gpu_text(Fields(record), palette);
  if (name == "eval") return eval_text(Fields(record), palette, steps);
  if (name == "checkpoint") return checkpoint_text(Fields(record), palette, steps);
  if (name == "restart") return restart_text(Fields(record), steps);
  if (name == "end") return end_text(record, palette, steps);
  return other_text(name, Fields(record), palette);
}

}  // namespace lockstep::telemetry
