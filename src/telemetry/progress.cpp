#include "telemetry/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/spans.hpp"
#include "telemetry/event_text.hpp"
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

std::string of_total(const std::string& name, double value, double total) {
  const std::string text = fmt::format("{} {}", name, grouped(std::llround(value)));
  return total > 0 ? fmt::format("{}/{}", text, grouped(std::llround(total))) : text;
}

/// "  accuracy 0.97", or nothing.
std::string first_metric(const Record& record) {
  const Field* field = find(record, "metrics");
  const auto* metrics = field == nullptr ? nullptr : std::get_if<std::map<std::string, double>>(field);
  if (metrics == nullptr || metrics->empty()) return "";
  return fmt::format("  {} {}", spaced(metrics->begin()->first), short_number(metrics->begin()->second));
}

class Progress : public Sink {
 public:
  Progress(std::FILE* file, ProgressOptions options)
      : file_(file), options_(std::move(options)), palette_(make_palette(options_.color)) {
    if (!options_.clock) options_.clock = steady_seconds;
  }

  void event(const std::string& name, const Record& record) override {
    if (name == "step") {
      on_step(record);
      return;
    }
    if (name == "start") on_start(record);
    std::fprintf(file_, "%s%s\n", options_.terminal ? kEraseLine : "", event_text(name, record, palette_).c_str());
    std::fflush(file_);
  }

 private:
  void on_start(const Record& record) {
    steps_ = number(record, "steps");
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
    if (!is_due(step, now)) return;
    const std::string text = step_text(record, step, now);
    if (options_.terminal) {
      const int columns = options_.columns > 0 ? options_.columns : terminal_columns(file_);
      std::fprintf(file_, "%s%s", kEraseLine, text.substr(0, static_cast<std::size_t>(columns - 1)).c_str());
    } else {
      std::fprintf(file_, "%s\n", text.c_str());
    }
    std::fflush(file_);
    shown_ = now;
    shown_step_ = step;
    data_wait_ = 0;
  }

  [[nodiscard]] bool is_due(double step, double now) const {
    if (steps_ > 0 && step >= steps_) return true;
    if (options_.terminal) return now - shown_ >= kTerminalInterval;
    const bool next_tenth = steps_ > 0 && shown_step_ >= 0 && tenth_of(step) > tenth_of(shown_step_);
    return next_tenth || shown_step_ < 0 || now - shown_ >= std::clamp((now - started_) / 60, 10.0, 60.0);
  }

  [[nodiscard]] double tenth_of(double step) const { return std::floor(10 * step / steps_); }

  [[nodiscard]] std::string step_text(const Record& record, double step, double now) const {
    std::string text;
    if (find(record, "epoch") != nullptr) text += of_total("epoch", number(record, "epoch"), epochs_) + "  ";
    text += of_total("step", step, steps_);
    text += fmt::format("  loss {}", short_number(number(record, "loss", std::nan(""))));
    text += first_metric(record);
    text += fmt::format("  {} samples/s", short_number(number(record, "samples_per_second")));
    if (steps_ > step && step > first_step_) {
      const double seconds_per_step = (now - first_step_at_) / (step - first_step_);
      text += fmt::format("  {} left", duration((steps_ - step) * seconds_per_step));
    }
    if (now > shown_) text += fmt::format("  data wait {:.0f} %", std::min(100.0, 100 * data_wait_ / (now - shown_)));
    return text;
  }

  std::FILE* file_;
  ProgressOptions options_;
  Palette palette_;
  double steps_ = 0, epochs_ = 0;               // of the whole run; 0: not known
  double started_ = 0;                          // by the clock
  double first_step_ = -1, first_step_at_ = 0;  // of this process: a resumed run starts in the middle
  double shown_ = 0, shown_step_ = -1;          // the newest line
  double data_wait_ = 0;                        // seconds since it
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
