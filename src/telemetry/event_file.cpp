#include "telemetry/event_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "telemetry/event_log.hpp"
#include "telemetry/unix_time.hpp"

namespace lockstep::telemetry {
namespace {

class EventFile final : public Sink {
 public:
  explicit EventFile(std::string path) : path_(std::move(path)) {}
  ~EventFile() override {
    if (file_ >= 0) ::close(file_);
  }
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  void event(const std::string& name, const Record& record) override {
    const std::string line = timed_line(event_line(name, record));
    if (name == "start") open();
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
    file_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    append_line(file_, early_);
    early_.clear();
  }

  std::string path_, early_;
  int file_ = -1;
  bool started_ = false;
};

}  // namespace

std::string timed_line(const std::string& line) {
  return fmt::format("{},\"time\":{:.3f}}}\n", line.substr(0, line.size() - 1), unix_time());
}

void append_line(int file, const std::string& line) {
  const off_t end = ::lseek(file, 0, SEEK_END);
  const ssize_t written = ::write(file, line.data(), line.size());
  if (written <= 0 || written == static_cast<ssize_t>(line.size()) || end < 0) return;
  [[maybe_unused]] const int cut = ::ftruncate(file, end);
}

std::unique_ptr<Sink> make_event_file(std::string path) {
  return std::make_unique<EventFile>(std::move(path));
}

}  // namespace lockstep::telemetry
