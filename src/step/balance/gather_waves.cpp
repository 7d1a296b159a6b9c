#include "step/balance/gather_waves.hpp"

#include <algorithm>
#include <optional>

namespace lockstep::balance {

namespace {

class Waves {
 public:
  Waves(const PipelineSetup& setup, bool training)
      : setup_(setup),
        training_(training),
        forward_(setup.parts.size()),
        backward_(setup.parts.size()),
        read_by_(setup.parts.size()),
        last_(setup.speeds.size()) {
    for (std::size_t p = 0; p < setup.parts.size(); ++p) {
      for (Tasks* const tasks : {&forward_[p], &backward_[p]})
        tasks->wave_of_micro_batch.assign(setup.rank_of_micro_batch[p].size(), -1);
      for (const int part : setup.parts[p].reads) read_by_[part].push_back(p);
    }
  }

  /// Returns the wave's place in the list of all.
  int add(const Task& task) {
    const std::size_t part = task.part, micro_batch = task.micro_batch;
    const std::size_t worker = setup_.rank_of_micro_batch[part][micro_batch];
    Tasks& tasks = (task.forward ? forward_ : backward_)[part];
    const int after = std::max(wave_of_awaited(task), wave_of_worker(worker));
    auto wave = std::upper_bound(tasks.waves.begin(), tasks.waves.end(), after);
    if (wave == tasks.waves.end()) wave = tasks.waves.insert(wave, waves_++);
    last_[worker] = task;
    return tasks.wave_of_micro_batch[micro_batch] = *wave;
  }

 private:
  /// The forwards of a part, or its backwards.
  struct Tasks {
    std::vector<int> waves;                ///< ascending
    std::vector<int> wave_of_micro_batch;  ///< -1: not added yet
  };

  [[nodiscard]] static int latest(const std::vector<Tasks>& tasks, std::span<const std::size_t> parts,
                                  int micro_batch) {
    int latest = -1;
    for (const std::size_t part : parts) {
      latest = std::max(latest, tasks[part].wave_of_micro_batch[micro_batch]);
    }
    return latest;
  }

  int wave_of_awaited(const Task& task) const {
    const std::size_t part = task.part;
    if (!task.forward) return latest(backward_, read_by_[part], task.micro_batch);  // its own forward: wave_of_worker()
    const auto& reads = setup_.parts[part].reads;
    return latest(forward_, std::vector<std::size_t>(reads.begin(), reads.end()), task.micro_batch);
  }

  // In an evaluation, a worker may wait until what its last forward has sent has left, i.e. the parts that read it are
  // about to compute that micro-batch. In training only a micro-batch's backward waits for that, which those parts'
  // backward precedes anyway.
  int wave_of_worker(std::size_t worker) const {
    if (!last_[worker]) return -1;
    const auto& [part, micro_batch, forward] = *last_[worker];
    const Tasks& own = (forward ? forward_ : backward_)[part];
    const int before = own.wave_of_micro_batch[micro_batch];
    if (training_) return before;
    return std::max(before, latest(forward_, read_by_[part], micro_batch));
  }

  const PipelineSetup& setup_;
  const bool training_;
  std::vector<Tasks> forward_, backward_;          // by part
  std::vector<std::vector<std::size_t>> read_by_;  // by part
  std::vector<std::optional<Task>> last_;          // by worker: added so far
  int waves_ = 0;
};

}  // namespace

std::vector<int> waves_of(const PipelineSetup& setup, std::span<const Task> order) {
  Waves waves(setup, std::any_of(order.begin(), order.end(), [](const Task& task) { return !task.forward; }));
  std::vector<int> of_task;
  std::vector<std::vector<int>> of_part(setup.parts.size());
  for (const Task& task : order) {
    of_task.push_back(waves.add(task));
    of_part[task.part].push_back(of_task.back());
  }
  for (std::vector<int>& list : of_part) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto& list = of_part[order[i].part];
    of_task[i] = std::lower_bound(list.begin(), list.end(), of_task[i]) - list.begin();
  }
  return of_task;
}

std::vector<Task> order_of_evaluation(const PipelineSetup& setup) {
  std::vector<Task> order;
  for (const int micro_batch : order_of_micro_batches(setup.rank_of_micro_batch)) {
    for (int part = 0; part < static_cast<int>(setup.parts.size()); ++part) order.push_back({part, micro_batch, true});
  }
  return order;
}

}  // namespace lockstep::balance
