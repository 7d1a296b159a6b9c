#include "telemetry/event_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "telemetry/text.hpp"

namespace lockstep::telemetry {
namespace {

/// Takes fields out of a record one by one, so that what is left can be shown as it is.
class Fields {
 public:
  explicit Fields(const Record& record) : left_(record) {
    std::erase_if(left_,
                  [](const auto& field) { return field.second == Field(false); });  // "interrupted no" is no news
  }

  [[nodiscard]] bool has(const std::string& name) const { return find(left_, name) != nullptr; }
  [[nodiscard]] std::string take(const std::string& name) {
    const Field* field = find(left_, name);
    std::string text = field == nullptr ? "" : to_text(name, *field);
    drop(name);
    return text;
  }
  [[nodiscard]] double take_number(const std::string& name) {
    const double value = number(left_, name);
    drop(name);
    return value;
  }
  [[nodiscard]] std::map<std::string, double> take_map(const std::string& name) {
    const Field* field = find(left_, name);
    const auto* map = field == nullptr ? nullptr : std::get_if<std::map<std::string, double>>(field);
    if (map == nullptr) return {};
    auto values = *map;
    drop(name);
    return values;
  }
  [[nodiscard]] const Record& left() const { return left_; }

 private:
  void drop(const std::string& name) {
    std::erase_if(left_, [&](const auto& field) { return field.first == name; });
  }
  Record left_;
};

/// Parts of a line, two spaces apart.
class Line {
 public:
  void add(const std::string& part) {
    if (!part.empty()) text_ += (text_.empty() ? "" : "  ") + part;
  }
  void add_map(const std::map<std::string, double>& values) {
    for (const auto& [name, value] : values) add(fmt::format("{} {}", spaced(name), short_number(value)));
  }
  void add_rest(const Fields& fields) {
    for (const auto& [name, field] : fields.left()) add(fmt::format("{} {}", spaced(name), to_text(name, field)));
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string counted(const std::string& count, const std::string& thing) {
  return fmt::format("{} {}{}", count, thing, count == "1" ? "" : "s");
}

/// Takes `things` out of the fields: "2 ranks", "1 thread".
void add_counts(Line& line, Fields& fields, std::initializer_list<const char*> things) {
  for (const char* thing : things) {
    const std::string name = fmt::format("{}s", thing);
    if (fields.has(name)) line.add(counted(fields.take(name), thing));
  }
}

std::string start_text(Fields fields, const Palette& palette) {
  Line run;
  if (fields.has("version")) run.add("lockstep " + fields.take("version"));
  if (fields.has("job")) run.add(palette.strong + fields.take("job") + palette.reset);
  add_counts(run, fields, {"rank", "thread", "host", "shard"});
  if (fields.has("batch_size")) run.add("batch " + fields.take("batch_size"));
  Line size;
  add_counts(size, fields, {"parameter", "sample", "epoch", "step"});
  size.add_rest(fields);
  return size.text().empty() ? run.text()
                             : fmt::format("{}\n  {}{}{}", run.text(), palette.quiet, size.text(), palette.reset);
}

std::string eval_text(Fields fields, const Palette& palette) {
  Line line;
  if (fields.has("step")) line.add("step " + fields.take("step"));
  std::string set = fields.take("set");
  line.add(palette.strong + (set.empty() ? std::string("evaluation") : set) + palette.reset);
  if (fields.has("loss")) line.add("loss " + fields.take("loss"));
  line.add_map(fields.take_map("metrics"));
  line.add_rest(fields);
  return line.text();
}

std::string checkpoint_text(Fields fields, const Palette& palette) {
  Line line;
  if (fields.has("step")) line.add("step " + fields.take("step"));
  line.add("checkpoint " + fields.take("path"));
  if (fields.has("seconds")) line.add(duration(fields.take_number("seconds")));
  line.add_rest(fields);
  return palette.quiet + line.text() + palette.reset;
}

/// The longest first, each with its share of the run.
std::string phases_text(const std::map<std::string, double>& phases, double seconds) {
  std::vector<std::pair<std::string, double>> sorted(phases.begin(), phases.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Line line;
  for (const auto& [name, value] : sorted) {
    line.add(seconds > 0 ? fmt::format("{} {} ({:.0f} %)", spaced(name), duration(value), 100 * value / seconds)
                         : fmt::format("{} {}", spaced(name), duration(value)));
  }
  return line.text();
}

std::string end_text(Fields fields, const Palette& palette) {
  Line first;
  first.add(std::string(palette.good) + "done" + palette.reset);
  if (fields.has("steps")) first.add(counted(fields.take("steps"), "step"));
  if (fields.has("samples")) first.add(counted(fields.take("samples"), "sample"));
  const double seconds = fields.take_number("seconds");
  if (seconds > 0) first.add(duration(seconds));
  if (fields.has("samples_per_second"))
    first.add(short_number(fields.take_number("samples_per_second")) + " samples/s");
  if (fields.has("loss")) first.add("loss " + fields.take("loss"));
  std::string text = first.text();

  Line metrics;
  metrics.add_map(fields.take_map("metrics"));
  if (!metrics.text().empty()) text += "\n  " + metrics.text();
  const auto phases = fields.take_map("phases");
  if (!phases.empty())
    text += fmt::format("\n  {}phases: {}{}", palette.quiet, phases_text(phases, seconds), palette.reset);
  const std::string digest = fields.take("parameters_sha256");
  for (const auto& [name, field] : fields.left()) {
    text += fmt::format("\n  {}{}: {}{}", palette.quiet, spaced(name), to_text(name, field), palette.reset);
  }
  if (!digest.empty()) text += "\n  parameters sha256: " + digest;
  return text;
}

}  // namespace

Palette make_palette(bool color) {
  if (!color) return {};
  return {"\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[0m"};
}

std::string event_text(const std::string& name, const Record& record, const Palette& palette) {
  if (name == "start") return start_text(Fields(record), palette);
  if (name == "eval") return eval_text(Fields(record), palette);
  if (name == "checkpoint") return checkpoint_text(Fields(record), palette);
  if (name == "end") return end_text(Fields(record), palette);
  Line line;
  line.add(spaced(name) + ":");
  line.add_rest(Fields(record));
  return line.text();
}

}  // namespace lockstep::telemetry
