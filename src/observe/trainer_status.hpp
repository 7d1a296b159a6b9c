// Tells Kubeflow's Trainer how far the run is, where it asks for that: progress, time left and metrics become the
// status of the TrainJob. On rank 0; a thread sends, so that training never waits.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "lockstep/events.hpp"

namespace lockstep::observe {

/// Of the run so far. Pure.
class TrainerProgress {
 public:
  /// Returns whether it has changed.
  bool take(const events::Event& event);
  /// The body of the request; `time`: in UTC, as RFC 3339.
  std::string body(const std::string& time) const;

 private:
  void take_step(const events::Step& step);

  std::int64_t steps_ = 0, step_ = 0;
  std::optional<std::pair<std::int64_t, double>> first_;  ///< step of this start, and its seconds
  bool done_ = false;
  std::optional<double> seconds_left_;
  std::map<std::string, double> metrics_;
};

class TrainerStatus final : public events::Sink {
 public:
  /// Null unless the environment says where to send it.
  [[nodiscard]] static std::unique_ptr<TrainerStatus> make();
  /// Sends what has not been sent yet.
  ~TrainerStatus() override;
  TrainerStatus(const TrainerStatus&) = delete;
  TrainerStatus& operator=(const TrainerStatus&) = delete;

  void event(const events::Event& event) override;

 private:
  struct Target {
    std::string url, ca_file, token_file;
  };
  explicit TrainerStatus(Target target);
  void serve();
  void send(const std::string& body);

  Target target_;
  std::string problem_;  ///< of the last request
  std::mutex mutex_;
  std::condition_variable news_;
  TrainerProgress progress_;
  bool changed_ = false, over_ = false;
  std::thread thread_;
};

}  // namespace lockstep::observe
