// Counts the messages that a rank sends before the first step of a training run, whatever sends them.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <exception>
#include <string>

#include "comm/reduce/rank_reducer.hpp"
#include "config/config.hpp"
#include "lockstep/trainer.hpp"
#include "run/train/catalogue.hpp"

namespace lockstep {

/// Counts the reducer's messages separately. All others are from collectives, which call their own send().
class CountingCommunicator final : public Communicator {
 public:
  explicit CountingCommunicator(Communicator& inner) : inner_(inner) {}
  [[nodiscard]] std::uint64_t messages_but_of_reduce() const { return inner_.traffic().messages - of_reduce_; }

  [[nodiscard]] int rank() const override { return inner_.rank(); }
  [[nodiscard]] int size() const override { return inner_.size(); }
  [[nodiscard]] const Topology& topology() const override { return inner_.topology(); }
  [[nodiscard]] std::unique_ptr<Transfer> send(std::span<const std::byte> bytes, int to, int tag) override {
    if (tag >= comm::kFirstReduceTag && tag <= comm::kScalarTag) ++of_reduce_;
    return inner_.send(bytes, to, tag);
  }
  [[nodiscard]] std::unique_ptr<Transfer> receive(std::span<std::byte> bytes, int from, int tag,
                                                  std::function<void()> notify) override {
    return inner_.receive(bytes, from, tag, std::move(notify));
  }
  void check_peers() override { inner_.check_peers(); }
  void barrier(const Operation& operation) override { inner_.barrier(operation); }
  void broadcast(std::span<std::byte> bytes, int root, const Operation& operation) override {
    inner_.broadcast(bytes, root, operation);
  }
  void all_gather(std::span<const std::byte> in, std::span<std::byte> out, const Operation& operation) override {
    inner_.all_gather(in, out, operation);
  }
  void all_reduce_sum(std::span<float> values, const Operation& operation) override {
    inner_.all_reduce_sum(values, operation);
  }
  [[nodiscard]] TrafficCounters traffic() const override { return inner_.traffic(); }
  [[noreturn]] void abort(int exit_code) override {
    inner_.abort(exit_code);
    std::terminate();  // not reached
  }

 private:
  Communicator& inner_;
  std::atomic<std::uint64_t> of_reduce_{0};
};

/// Asked in each step, after its all-reduce and before anything else is sent, and before that in each round in which
/// ranks wait for slow work of one of them. How many such rounds there are depends on time, so their messages are not
/// counted: an all-gather each.
class FirstStepWatcher final : public RunWatcher {
 public:
  explicit FirstStepWatcher(const CountingCommunicator& communicator) : communicator_(communicator) {}
  void step_done(std::int64_t /*step*/) override { stepped_ = true; }
  [[nodiscard]] StopRequest stop_request() const override {
    if (stepped_) return StopRequest::none;
    const auto per_round = static_cast<std::uint64_t>(std::bit_width(static_cast<unsigned>(communicator_.size() - 1)));
    messages_ = communicator_.messages_but_of_reduce() - per_round * rounds_++;
    return StopRequest::none;
  }
  [[nodiscard]] std::uint64_t messages() const { return messages_; }

 private:
  const CountingCommunicator& communicator_;
  bool stepped_ = false;
  mutable std::uint64_t messages_ = 0, rounds_ = 0;
};

/// Trains with a probe of the balancer and checkpoints; returns what this rank sent before its first step.
inline std::uint64_t messages_before_the_first_step(Communicator& communicator, const std::string& directory,
                                                    std::int64_t stop_at) {
  constexpr const char* kStartJob = R"(
job:
  model: {layers: [flatten, {linear: {features: 10}}]}
  data: {train: {digits: {count: 64}}, validation: {digits: {count: 40, first: 100000}}}
  batch_size: 64
  micro_batches: 64
  steps: 4
  threads: 1
  optimizer: adam
  learning_rate: 0.01
  evaluate: never
  checkpoint: {every: 2 steps}
)";
  const Registries registries = Registries::built_in();
  const JobFile job =
      config::load_text(kStartJob, "job.yaml", {"run_directory=" + directory}, train::catalogue_of(registries), false);
  CountingCommunicator counting(communicator);
  FirstStepWatcher watcher(counting);
  TrainerOptions options;
  options.watcher = &watcher;
  options.stop_at = stop_at;
  (void)train_job(job, counting, registries, options);
  return watcher.messages();
}

/// Collectives until the first step: 14 were counted on one host with the balancer's probe, 3 of which are rounds in
/// which all wait for rank 0's work in the run directory; 2 more on several hosts (is the run directory shared?), 6
/// more where a checkpoint is loaded; 1 moves shares after the probe, 1 hands on an index of data, 1 is MPI's own
/// start.
inline constexpr int kCollectivesOfAFreshStart = 19, kCollectivesOfAResumedStart = 25;

/// Each collective costs a rank at most log2 of the number of ranks, rounded up, in messages.
inline std::uint64_t allowed_messages(int collectives, int ranks) {
  const int rounds = std::bit_width(static_cast<unsigned>(ranks - 1));
  return static_cast<std::uint64_t>(collectives) * static_cast<std::uint64_t>(rounds);
}

}  // namespace lockstep
