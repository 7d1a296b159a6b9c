#include "telemetry/event_file.hpp"

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "lockstep/error.hpp"
#include "telemetry/event_log.hpp"

namespace lockstep::telemetry {
namespace {

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

class EventFile final : public Sink {
 public:
  explicit EventFile(std::string path) : path_(std::move(path)) {}
  ~EventFile() override {
    if (file_ != nullptr) (void)std::fclose(file_);
  }
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  void event(const std::string& name, const Record& record) override {
    Record timed = record;
    timed.emplace_back("time", unix_time());
    if (name == "start") open();
    if (!started_) {
      early_.emplace_back(name, std::move(timed));
    } else {
      write(name, timed);
    }
  }

 private:
  void open() {
    if (started_) return;
    started_ = true;
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
    file_ = std::fopen(path_.c_str(), "ae");
    if (file_ != nullptr) log_ = make_json_log(file_);
    for (const auto& [name, record] : early_) write(name, record);
    early_.clear();
  }

  void write(const std::string& name, const Record& record) {
    if (!log_) return;
    try {
      log_->event(name, record);
    } catch (const Error&) {  // a line is lost
      std::clearerr(file_);
    }
  }

  std::string path_;
  std::FILE* file_ = nullptr;
  std::unique_ptr<Sink> log_;
  std::vector<std::pair<std::string, Record>> early_;
  bool started_ = false;
};

}  // namespace

std::unique_ptr<Sink> make_event_file(std::string path) {
  return std::make_unique<EventFile>(std::move(path));
}

}  // namespace lockstep::telemetry
