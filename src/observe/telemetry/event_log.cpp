#include "observe/telemetry/event_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "lockstep/error.hpp"
#include "observe/telemetry/event_json.hpp"
#include "observe/telemetry/step_thinning.hpp"

namespace lockstep::telemetry {
namespace {

class JsonLog final : public events::Sink {
 public:
  explicit JsonLog(Print print) : print_(std::move(print)) {}
  void event(const events::Event& event) override { print_(event_line(event) + "\n"); }

 private:
  Print print_;
};

class EventFile final : public events::Sink {
 public:
  EventFile(std::string path, std::optional<Span> every) : path_(std::move(path)), lines_(every) {}
  ~EventFile() override {
    if (file_ < 0) return;
    append_line(file_, lines_.rest());
    ::close(file_);
  }
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  void event(const events::Event& event) override {
    const std::string line = lines_.next(event, with_time(event_line(event)));
    if (std::holds_alternative<events::Start>(event)) open();
    if (std::holds_alternative<events::Checkpoint>(event)) open_if_removed();
    if (!started_) {
      early_ += line;
    } else {
      append_line(file_, line);
    }
  }

 private:
  void open() {
    if (started_) return;
    started_ = true;
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
    file_ = open_event_file(path_);
    append_line(file_, early_);
    early_.clear();
  }
  // A checkpoint makes a run directory that was removed again.
  void open_if_removed() {
    struct stat status {};
    if (!started_ || ::stat(path_.c_str(), &status) == 0 || errno != ENOENT) return;
    if (file_ >= 0) ::close(file_);
    file_ = open_event_file(path_);
  }

  std::string path_, early_;
  ThinnedLines lines_;
  int file_ = -1;
  bool started_ = false;
};

class Tee final : public events::Sink {
 public:
  explicit Tee(std::vector<std::unique_ptr<events::Sink>> sinks) : sinks_(std::move(sinks)) {}
  void event(const events::Event& event) override {
    for (const auto& sink : sinks_) sink->event(event);
  }

 private:
  std::vector<std::unique_ptr<events::Sink>> sinks_;
};

}  // namespace

std::unique_ptr<events::Sink> make_json_log(Print print) {
  return std::make_unique<JsonLog>(std::move(print));
}

std::unique_ptr<Console> make_json_console() {
  ConsoleOptions options;
  options.left_out = [](std::size_t lines) {
    std::string text = left_out_text(lines);
    text.pop_back();
    return event_line(events::Warning{text}) + "\n";
  };
  return std::make_unique<Console>(STDOUT_FILENO, std::move(options));
}

void require_written(Console& json) {
  if (const std::string problem = json.finish(); !problem.empty()) {
    throw Error(ExitCode::infrastructure, "cannot write the event log: " + problem);
  }
}

std::unique_ptr<events::Sink> make_event_file(std::string path, std::optional<Span> every) {
  return std::make_unique<EventFile>(std::move(path), every);
}

std::unique_ptr<events::Sink> make_tee(std::vector<std::unique_ptr<events::Sink>> sinks) {
  return std::make_unique<Tee>(std::move(sinks));
}

int open_event_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  struct stat status {};
  if (file < 0 || ::fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0) return file;
  const int reader = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char last = '\n';
  if (reader >= 0 && ::pread(reader, &last, 1, status.st_size - 1) == 1 && last != '\n') append_line(file, "\n");
  if (reader >= 0) ::close(reader);
  return file;
}

void append_line(int file, const std::string& line) {
  if (line.empty()) return;
  const off_t end = ::lseek(file, 0, SEEK_END);
  const ssize_t written = ::write(file, line.data(), line.size());
  if (written <= 0 || written == static_cast<ssize_t>(line.size()) || end < 0) return;
  [[maybe_unused]] const int cut = ::ftruncate(file, end);
}

}  // namespace lockstep::telemetry
