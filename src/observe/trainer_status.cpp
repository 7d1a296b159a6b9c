#include "observe/trainer_status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/background.hpp"
#include "core/files.hpp"
#include "core/say.hpp"
#include "data/store/http.hpp"
#include "observe/telemetry/unix_time.hpp"

namespace lockstep::observe {

namespace {

constexpr std::chrono::seconds kBetween{5};  // Trainer limits the rate of requests
constexpr std::chrono::seconds kPatience{5};

// Trainer 2.2 says SERVER where its first form said STATUS.
std::string variable(const std::string& name) {
  for (const char* kind : {"SERVER", "STATUS"}) {
    if (const char* value = std::getenv(fmt::format("KUBEFLOW_TRAINER_{}_{}", kind, name).c_str())) return value;
  }
  return "";
}

}  // namespace

bool TrainerProgress::take(const events::Event& event) {
  if (const auto* start = std::get_if<events::Start>(&event)) {
    steps_ = start->steps;
  } else if (const auto* restart = std::get_if<events::Restart>(&event)) {
    step_ = restart->step;
  } else if (const auto* step = std::get_if<events::Step>(&event)) {
    take_step(*step);
  } else if (const auto* evaluation = std::get_if<events::Evaluation>(&event)) {
    metrics_[evaluation->set + "_loss"] = evaluation->loss;
    for (const auto& [name, value] : evaluation->metrics) metrics_[evaluation->set + "_" + name] = value;
  } else if (const auto* end = std::get_if<events::End>(&event)) {
    done_ = !end->interrupted;
    step_ = end->steps;
    if (done_) seconds_left_ = 0;
  } else {
    return false;
  }
  return true;
}

void TrainerProgress::take_step(const events::Step& step) {
  step_ = step.step;
  metrics_["step"] = step.step;
  metrics_["epoch"] = step.epoch;
  metrics_["loss"] = step.loss;
  metrics_["learning_rate"] = step.learning_rate;
  for (const auto& [name, value] : step.metrics) metrics_[name] = value;
  if (!first_) first_ = {step.step, step.seconds};
  const double done = step_ - first_->first, left = steps_ - step_;
  if (done > 0 && steps_ > 0) seconds_left_ = (step.seconds - first_->second) / done * left;
}

std::string TrainerProgress::body(const std::string& time) const {
  nlohmann::ordered_json status;
  if (steps_ > 0) {
    const std::int64_t percent = done_ ? 100 : std::clamp<std::int64_t>(100 * step_ / steps_, 0, 99);
    status["progressPercentage"] = percent;
  }
  if (seconds_left_) status["estimatedRemainingSeconds"] = std::llround(std::clamp(*seconds_left_, 0.0, 2147483647.0));
  status["metrics"] = nlohmann::ordered_json::array();
  for (const auto& [name, value] : metrics_) {
    status["metrics"].push_back({{"name", name}, {"value", fmt::format("{:.6g}", value)}});
  }
  status["lastUpdatedTime"] = time;
  return nlohmann::ordered_json{{"trainerStatus", std::move(status)}}.dump();
}

std::unique_ptr<TrainerStatus> TrainerStatus::make() {
  Target target{variable("URL"), variable("CA_CERT"), variable("TOKEN")};
  if (target.url.empty()) return nullptr;
  return std::unique_ptr<TrainerStatus>(new TrainerStatus(std::move(target)));
}

TrainerStatus::TrainerStatus(Target target) : target_(std::move(target)), thread_([this] { serve(); }) {}

TrainerStatus::~TrainerStatus() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  news_.notify_all();
  thread_.join();
}

void TrainerStatus::event(const events::Event& event) {
  {
    const std::lock_guard lock(mutex_);
    changed_ |= progress_.take(event);
  }
  news_.notify_all();
}

void TrainerStatus::serve() {
  work_in_background();
  std::unique_lock lock(mutex_);
  while (true) {
    news_.wait(lock, [this] { return changed_ || over_; });
    if (!changed_) return;
    changed_ = false;
    const std::string body = progress_.body(telemetry::utc_text(telemetry::unix_time()));
    lock.unlock();
    send(body);
    lock.lock();
    news_.wait_for(lock, kBetween, [this] { return over_; });
  }
}

void TrainerStatus::send(const std::string& body) {
  store::HttpRequest request{.method = "POST", .url = target_.url, .body = body, .patience = kPatience, .direct = true};
  request.ca_file = target_.ca_file;
  request.headers = {"Content-Type: application/json"};
  // Kubernetes replaces the token from time to time.
  if (const auto token = read_whole_file(target_.token_file))
    request.headers.push_back("Authorization: Bearer " + *token);
  const store::HttpAnswer answer = store::send(request);
  std::string problem = answer.status == 0 ? answer.problem : fmt::format("status {}: {}", answer.status, answer.text);
  if (answer.status >= 200 && answer.status < 300) problem.clear();
  if (!problem.empty() && problem != problem_) {
    say("warning: Kubeflow's Trainer is not told how far the run is: {}: {}\n", target_.url, problem);
  }
  problem_ = std::move(problem);
}

}  // namespace lockstep::observe
