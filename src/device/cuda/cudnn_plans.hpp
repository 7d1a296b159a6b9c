// CudnnPlans: the existing cuDNN plans for one GPU, by what they compute. All its streams share them: a net has many
// layers of the same size, each worker has a kernel for each of them, and some plans take half a second to compile.
// They also share what was found of a plan, which may have been asked for in several ways: as the first of cuDNN's, by
// name.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace lockstep::device {

class CudnnPlan;

/// What trying a plan has shown.
struct CudnnTrial {
  std::mutex mutex;           ///< guards the next
  std::optional<bool> right;  ///< nothing: not tried yet
};

class CudnnPlans {
 public:
  using Plan = std::shared_ptr<const CudnnPlan>;  ///< null: there is no plan

  /// Returns the result of the first call's `make`. One plan is made at a time; other callers wait.
  [[nodiscard]] Plan find_or_make(const std::string& operations, const std::function<Plan()>& make) {
    const std::lock_guard lock(mutex_);
    if (const auto found = made_.find(operations); found != made_.end()) return found->second;
    return made_.emplace(operations, make()).first->second;
  }
  /// Of the plan of this name for these operations.
  [[nodiscard]] std::shared_ptr<CudnnTrial> trial_of(const std::string& operations, const std::string& name) {
    const std::lock_guard lock(trying_);
    auto& trial = trials_[{operations, name}];
    if (trial == nullptr) trial = std::make_shared<CudnnTrial>();
    return trial;
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return made_.size();
  }

 private:
  mutable std::mutex mutex_;  ///< guards what follows
  std::map<std::string, Plan> made_;
  std::mutex trying_;  ///< guards the next
  std::map<std::pair<std::string, std::string>, std::shared_ptr<CudnnTrial>> trials_;
};

}  // namespace lockstep::device
