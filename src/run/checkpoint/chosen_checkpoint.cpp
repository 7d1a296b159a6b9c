#include "run/checkpoint/chosen_checkpoint.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lockstep/error.hpp"

namespace lockstep::checkpoint {

namespace {

namespace fs = std::filesystem;
using ReadSome = std::function<void()>;

nlohmann::json job_in(const Manifest& manifest) {
  const auto json = nlohmann::json::parse(manifest.progress.job, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json.value("job", nlohmann::json::object()) : nlohmann::json::object();
}

bool says(const nlohmann::json& job, const char* pointer) {
  const nlohmann::json::json_pointer at(pointer);
  return job.contains(at) && job.at(at) == true;
}

/// What the newest checkpoint with an intact manifest says; nothing if there is none.
std::optional<Manifest> newest_manifest(const std::string& checkpoints) {
  for (const auto& path : list_checkpoints(checkpoints)) {
    try {
      return open_checkpoint(path).manifest;
    } catch (const Error& error) {
      if (error.code() != ExitCode::data) throw;
    }
  }
  return std::nullopt;
}

[[noreturn]] void none_in(const std::string& checkpoints, const std::string& found) {
  throw Error(ExitCode::data, fmt::format("{}: expected a checkpoint, found {}; train the job first (lockstep train), "
                                          "or give one by its path",
                                          checkpoints, found));
}

Checkpoint sound(const std::string& directory, const ReadSome& read_some = {}) {
  std::string why;
  if (auto checkpoint = read_checkpoint(directory, why, read_some)) return std::move(*checkpoint);
  throw Error(ExitCode::data, why);
}

Checkpoint newest(const std::string& checkpoints, const ReadSome& read_some) {
  std::string why, damaged;
  for (const auto& path : list_checkpoints(checkpoints)) {
    if (auto checkpoint = read_checkpoint(path, why, read_some)) return std::move(*checkpoint);
    damaged += (damaged.empty() ? "" : "; ") + why;
  }
  none_in(checkpoints, damaged.empty() ? "none" : "only damaged ones: " + damaged);
}

Checkpoint best(const std::string& checkpoints, const ReadSome& read_some) {
  const std::string name = best_checkpoint(checkpoints);
  if (!name.empty()) return sound(checkpoints + "/" + name, read_some);
  if (const auto damage = damage_of_best(checkpoints); !damage.empty()) {
    throw Error(ExitCode::data, damage + "; write that of the best one, or take the newest");
  }
  const auto manifest = newest_manifest(checkpoints);
  if (!manifest) none_in(checkpoints, "none");
  const auto metric = job_in(*manifest).value(nlohmann::json::json_pointer("/checkpoint/best"), std::string());
  throw Error(ExitCode::data,
              fmt::format("{}: expected a best checkpoint, found none; {}", checkpoints,
                          metric.empty() ? "set checkpoint.best to a metric when training, or take the newest"
                                         : fmt::format("no evaluation so far gave a number for {}, which "
                                                       "checkpoint.best names; take the newest",
                                                       metric)));
}

bool restores(const std::string& checkpoints) {
  const auto manifest = newest_manifest(checkpoints);
  return manifest && model_choice(*manifest).best;
}

}  // namespace

ModelChoice model_choice(const Manifest& manifest) {
  const auto job = job_in(manifest);
  return {.best = says(job, "/early_stop/restore_best"),
          .average = manifest.progress.averaged > 0 && says(job, "/optimizer/average/evaluate")};
}

ChosenCheckpoint choose_checkpoint(const std::string& checkpoints, const std::string& which,
                                   std::optional<bool> restores_best, const ReadSome& read_some) {
  const bool restored = which == "auto" && (restores_best ? *restores_best : restores(checkpoints));
  if (which == "best" || restored) return {best(checkpoints, read_some), "best"};
  return {newest(checkpoints, read_some), "newest"};
}

std::optional<std::int64_t> restored_step(const std::string& checkpoints) {
  return restores(checkpoints) ? step_of(best_checkpoint(checkpoints)) : std::nullopt;
}

std::string checkpoints_at(const std::string& place) {
  if (fs::is_directory(place + "/checkpoints")) return place + "/checkpoints";
  if (!list_checkpoints(place).empty()) return place;
  throw Error(ExitCode::data, fmt::format("{}: expected a checkpoint or a run directory, found {}", place,
                                          fs::exists(place) ? "no checkpoints in it" : "nothing there"));
}

ChosenCheckpoint checkpoint_at(const std::string& place) {
  const fs::path path = place;
  if (path.filename() == "best" && fs::is_regular_file(path)) {
    return choose_checkpoint(path.parent_path().string(), "best");
  }
  if (fs::exists(path / "manifest.json") || step_of(place)) return {sound(place), ""};
  return choose_checkpoint(checkpoints_at(place));
}

}  // namespace lockstep::checkpoint
