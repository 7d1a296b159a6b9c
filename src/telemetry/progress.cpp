#include "telemetry/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/spans.hpp"
#include "telemetry/event_fields.hpp"
#include "telemetry/event_text.hpp"
#include "telemetry/gpu_table.hpp"
#include "telemetry/text.hpp"

namespace lockstep::telemetry {
namespace {

constexpr double kTerminalInterval = 0.1;  // seconds between two drawings of the step line
constexpr const char* kEraseLine = "\r\x1b[K";

int terminal_columns(std::FILE* file) {
  winsize size{};
  if (ioctl(fileno(file), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

double steady_seconds() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

std::string of_total(double value, double total) {
  const std::string text = grouped(std::llround(value));
  return total > 0 ? fmt::format("{}/{}", text, grouped(std::llround(total))) : text;
}

/// "  accuracy 0.97", or nothing.
std::string first_metric(const Record& record) {
  const Field* field = find(record, "metrics");
  const auto* metrics = field == nullptr ? nullptr : std::get_if<std::map<std::string, double>>(field);
  if (metrics == nullptr || metrics->empty()) return "";
  return fmt::format("  {} {}", spaced(metrics->begin()->first), fixed_number(metrics->begin()->second));
}

class Progress : public Sink {
 public:
  Progress(std::FILE* file, ProgressOptions options)
      : file_(file), options_(std::move(options)), palette_(make_palette(options_.color)) {
    if (!options_.clock) options_.clock = steady_seconds;
  }

  void event(const std::string& name, const Record& record) override {
    if (name == "gpu") {
      gpus_.push_back(record);
      if (static_cast<double>(gpus_.size()) >= ranks_) tell_gpus();
      return;
    }
    tell_gpus();
    if (name == "step") {
      on_step(record);
      return;
    }
    if (name == "start") on_start(record);
    print(event_text(name, record, palette_, steps_));
  }

 private:
  void print(const std::string& text) {
    std::fprintf(file_, "%s%s\n", options_.terminal ? kEraseLine : "", text.c_str());
    std::fflush(file_);
  }

  void tell_gpus() {
    if (!gpus_.empty()) print(gpu_table(gpus_, palette_));
    gpus_.clear();
  }

  void on_start(const Record& record) {
    steps_ = number(record, "steps");
    ranks_ = number(record, "ranks");
    epochs_ = std::ceil(number(record, "epochs"));  // steps may end in the middle of one
    started_ = shown_ = options_.clock();
  }

  void on_step(const Record& record) {
    const double now = options_.clock(), step = number(record, "step");
    if (first_step_ < 0) {
      first_step_ = step;
      first_step_at_ = now;
    }
    data_wait_ += number(record, "data_wait_seconds");
    if (const Field* left_out = find(record, "left_out")) left_out_ += *left_out == Field(true) ? 1 : 0;
    if (!is_due(step, now)) return;
    std::string text = step_text(record, step, now, false);
    if (options_.terminal) {
      const int columns = options_.columns > 0 ? options_.columns : terminal_columns(file_);
      const auto room = static_cast<std::size_t>(columns - 1);
      if (text.size() > room) text = step_text(record, step, now, true);
      std::fprintf(file_, "%s%s", kEraseLine, text.substr(0, room).c_str());
    } else {
      std::fprintf(file_, "%s\n", text.c_str());
    }
    std::fflush(file_);
    shown_ = now;
    shown_step_ = step;
    data_wait_ = 0;
    left_out_ = 0;
  }

  [[nodiscard]] bool is_due(double step, double now) const {
    if (steps_ > 0 && step >= steps_) return true;
    if (options_.terminal) return now - shown_ >= kTerminalInterval;
    const bool next_tenth = steps_ > 0 && shown_step_ >= 0 && tenth_of(step) > tenth_of(shown_step_);
    return next_tenth || shown_step_ < 0 || now - shown_ >= std::clamp((now - started_) / 60, 10.0, 60.0);
  }

  [[nodiscard]] double tenth_of(double step) const { return std::floor(10 * step / steps_); }

  /// `narrow`: the same in fewer words, for a terminal of 80 columns.
  [[nodiscard]] std::string step_text(const Record& record, double step, double now, bool narrow) const {
    std::string epoch;
    if (find(record, "epoch") != nullptr) epoch = "epoch " + of_total(number(record, "epoch"), epochs_);
    std::string text = narrow ? epoch + "  " + of_total(step, steps_) + "  " : step_columns(step, steps_, epoch);
    text += "loss " + fixed_number(number(record, "loss", std::nan(""))) + first_metric(record);
    if (left_out_ > 0) text += fmt::format("  {} left out", counted(grouped(left_out_), "update"));
    text += fmt::format("  {:>{}}{}", short_number(number(record, "samples_per_second")), narrow ? 0 : 7,
                        narrow ? "/s" : " samples/s");
    if (steps_ > step && step > first_step_) {
      const double seconds_per_step = (now - first_step_at_) / (step - first_step_);
      text += fmt::format("  {} left", clock_time((steps_ - step) * seconds_per_step));
    }
    if (now > shown_) {
      const double share = std::min(100.0, 100 * data_wait_ / (now - shown_));
      text += fmt::format("  {} {:.0f} %", narrow ? "wait" : "data wait", share);
    }
    return text;
  }

  std::FILE* file_;
  ProgressOptions options_;
  Palette palette_;
  std::vector<Record> gpus_;                    // of ranks, until those of all are known
  double ranks_ = 0;                            // 0: not known
  double steps_ = 0, epochs_ = 0;               // of the whole run; 0: not known
  double started_ = 0;                          // by the clock
  double first_step_ = -1, first_step_at_ = 0;  // of this process: a resumed run starts in the middle
  double shown_ = 0, shown_step_ = -1;          // the newest line
  double data_wait_ = 0;                        // seconds since it
  std::int64_t left_out_ = 0;                   // updates since it
};

}  // namespace

ProgressOptions progress_options_for(std::FILE* file) {
  const char* term = std::getenv("TERM");
  const bool terminal = isatty(fileno(file)) != 0 && term != nullptr && std::string(term) != "dumb";
  const char* no_color = std::getenv("NO_COLOR");
  const bool color = terminal && (no_color == nullptr || *no_color == '\0');
  return {.terminal = terminal, .color = color, .columns = 0, .clock = {}};
}

std::unique_ptr<Sink> make_progress(std::FILE* file, ProgressOptions options) {
  return std::make_unique<Progress>(file, std::move(options));
}

std::unique_ptr<Sink> make_progress(std::FILE* file, bool terminal, bool color) {
  return make_progress(file, {.terminal = terminal, .color = color, .columns = 0, .clock = {}});
}

}  // namespace lockstep::telemetry
