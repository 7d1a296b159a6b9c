#include "observe/telemetry/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/spans.hpp"
#include "observe/telemetry/event_text.hpp"
#include "observe/telemetry/text.hpp"

namespace lockstep::telemetry {
namespace {

constexpr double kTerminalInterval = 0.1;  // seconds between two drawings of the step line
constexpr const char* kEraseLine = "\r\x1b[K";

int terminal_columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

double steady_seconds() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

std::string of_total(std::int64_t value, std::int64_t total) {
  return total > 0 ? fmt::format("{}/{}", grouped(value), grouped(total)) : grouped(value);
}

/// "  accuracy 0.97", or nothing.
std::string first_metric(const events::Step& step) {
  if (step.metrics.empty()) return "";
  const auto& [name, value] = *step.metrics.begin();
  return fmt::format("  {} {}", spaced(name), fixed_number(value));
}

class Progress final : public events::Sink {
 public:
  Progress(Print print, ProgressOptions options)
      : print_(std::move(print)), options_(std::move(options)), palette_(make_palette(options_.color)) {
    if (!options_.clock) options_.clock = steady_seconds;
  }

  void event(const events::Event& event) override {
    if (const auto* gpu = std::get_if<events::Gpu>(&event)) {
      gpus_.push_back(*gpu);
      if (static_cast<std::int64_t>(gpus_.size()) >= ranks_) show_gpus();
      return;
    }
    show_gpus();
    if (const auto* step = std::get_if<events::Step>(&event)) {
      on_step(*step);
      return;
    }
    if (const auto* start = std::get_if<events::Start>(&event)) on_start(*start);
    const std::string text = event_text(event, palette_, steps_);
    if (!text.empty()) print(text);
  }

 private:
  void print(const std::string& text) { print_(fmt::format("{}{}\n", options_.terminal ? kEraseLine : "", text)); }

  void show_gpus() {
    if (!gpus_.empty()) print(gpu_table(gpus_, palette_));
    gpus_.clear();
  }

  void on_start(const events::Start& start) {
    steps_ = start.steps;
    ranks_ = start.ranks;
    epochs_ = std::llround(std::ceil(start.epochs));  // the last epoch may be incomplete
    started_ = shown_ = options_.clock();
  }

  void on_step(const events::Step& step) {
    const double now = options_.clock();
    if (first_step_ < 0) {
      first_step_ = step.step;
      first_step_at_ = now;
    }
    data_wait_ += step.data_wait_seconds;
    skipped_ += step.skipped.value_or(false) ? 1 : 0;
    if (!is_due(step.step, now)) return;
    std::string text = step_text(step, now, false);
    if (options_.terminal) {
      const int columns = options_.columns > 0 ? options_.columns : terminal_columns();
      const std::size_t width = columns - 1;
      if (text.size() > width) text = step_text(step, now, true);
      print_(kEraseLine + text.substr(0, width));
    } else {
      print_(text + "\n");
    }
    shown_ = now;
    shown_step_ = step.step;
    data_wait_ = 0;
    skipped_ = 0;
  }

  /// Whether the step's line should be written now.
  bool is_due(std::int64_t step, double now) const {
    if (steps_ > 0 && step >= steps_) return true;
    if (options_.terminal) return now - shown_ >= kTerminalInterval;
    const bool next_tenth = steps_ > 0 && shown_step_ >= 0 && tenth_of(step) > tenth_of(shown_step_);
    return next_tenth || shown_step_ < 0 || now - shown_ >= std::clamp((now - started_) / 60, 10.0, 60.0);
  }

  std::int64_t tenth_of(std::int64_t step) const { return 10 * step / steps_; }

  /// `narrow`: the same in fewer words, for a terminal of 80 columns.
  std::string step_text(const events::Step& step, double now, bool narrow) const {
    const std::string epoch = "epoch " + of_total(step.epoch, epochs_);
    std::string text =
        narrow ? epoch + "  " + of_total(step.step, steps_) + "  " : step_columns(step.step, steps_, epoch);
    text += "loss " + fixed_number(step.loss) + first_metric(step);
    if (skipped_ > 0) text += fmt::format("  {} skipped", counted(skipped_, "update"));
    text +=
        fmt::format("  {:>{}}{}", short_number(step.samples_per_second), narrow ? 0 : 7, narrow ? "/s" : " samples/s");
    if (steps_ > step.step && step.step > first_step_) {
      const double seconds_per_step = (now - first_step_at_) / (step.step - first_step_);
      text += fmt::format("  {} left", clock_time((steps_ - step.step) * seconds_per_step));
    }
    if (now > shown_) {
      const double share = std::min(100.0, 100 * data_wait_ / (now - shown_));
      text += fmt::format("  {} {:.0f} %", narrow ? "wait" : "data wait", share);
    }
    return text;
  }

  Print print_;
  ProgressOptions options_;
  Palette palette_;
  std::vector<events::Gpu> gpus_;        // of the ranks so far, until those of all are known
  std::int64_t ranks_ = 0;               // 0: unknown
  std::int64_t steps_ = 0, epochs_ = 0;  // of the whole run; 0: unknown
  double started_ = 0;                   // on the clock
  std::int64_t first_step_ = -1;         // first step of this process: a resumed run starts in the middle
  double first_step_at_ = 0;
  double shown_ = 0;              // when the latest line was written
  std::int64_t shown_step_ = -1;  // the step that it was for
  double data_wait_ = 0;          // seconds since then
  std::int64_t skipped_ = 0;      // updates since then
};

}  // namespace

ProgressOptions progress_options_for(int descriptor) {
  const char* term = std::getenv("TERM");
  const bool terminal = isatty(descriptor) != 0 && term != nullptr && std::string(term) != "dumb";
  const char* no_color = std::getenv("NO_COLOR");
  const bool color = terminal && (no_color == nullptr || *no_color == '\0');
  return {.terminal = terminal, .color = color, .columns = 0, .clock = {}};
}

std::unique_ptr<Console> make_progress_console() {
  ConsoleOptions options;
  options.left_out = left_out_text;
  return std::make_unique<Console>(STDERR_FILENO, std::move(options));
}

std::unique_ptr<events::Sink> make_progress(Print print, ProgressOptions options) {
  return std::make_unique<Progress>(std::move(print), std::move(options));
}

}  // namespace lockstep::telemetry
