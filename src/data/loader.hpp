// Loader: provides the micro-batches that workers compute, read and augmented ahead of time by background threads.
//
// The content of a batch depends only on (job seed, step, micro-batch), never on threads, depth or the micro-batch
// assignment. A get() whose batch has not been begun makes it itself, so get() never deadlocks, whatever the order of
// calls.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/flight_recorder.hpp"
#include "core/input_source.hpp"
#include "core/trace.hpp"
#include "data/augment.hpp"
#include "data/mixer.hpp"
#include "data/prefetch.hpp"
#include "data/sample_cache.hpp"
#include "data/sampler.hpp"
#include "lockstep/data_set.hpp"

namespace lockstep::data {

/// Images are f32 [b, h, w, c], normalised; labels i32 [b]; tokens i32 [b, length].
struct Batch {
  std::vector<NamedTensor> tensors;  ///< in order of the pipeline's outputs
  std::vector<std::int64_t> ids;     ///< b of them
  std::int64_t valid = 0;            ///< samples that count; evaluation pads with copies of the last one
};

struct LoaderOptions {
  std::int64_t batch = 0;  ///< the global batch; a micro-batch has b = batch / micro-batches samples
  int micro_batches = 1;
  std::uint64_t seed = 0;
  std::uint64_t first_step = 0;  ///< the first step of a resumed run
  std::uint64_t last_step = 0;   ///< nothing is loaded for this or later steps
  std::int64_t cache_bytes = 0;  ///< budget for decoded samples; 0: no cache
  int threads = 0;               ///< 0: tuned
  int depth = 0;                 ///< batches loaded ahead; 0: tuned
  int max_threads = 0;           ///< upper bound for tuning; 0: one less than this process's cores
  /// true: shuffled by epoch, the tail dropped. false: evaluation; micro-batch i is samples i * b ... (i + 1) * b - 1,
  /// for evaluation_micro_batches(size, b) micro-batches, and a step is one evaluation, each with the same batches.
  bool training = true;
  std::optional<MixOptions> mix;  ///< training only
  bool drawn = false;             ///< batches consist of what Pipeline::draw() makes, and no sample is read
  /// The features that get() returns as MicroBatchInputs, by name, in this order; all of them if this is empty, or if
  /// batches are drawn.
  std::vector<std::string> inputs;
  std::shared_ptr<FlightRecorder> recorder;  ///< each finished micro-batch is reported to it as progress; may be null
};

struct LoaderCounters {
  int threads = 0;
  int depth = 0;
  std::int64_t cache_bytes = 0;
  std::int64_t buffer_bytes = 0;
  std::int64_t batches = 0;         ///< returned by get()
  std::int64_t made_by_caller = 0;  ///< of these, made by get() itself
  int ahead = 0;                    ///< batches loaded or being loaded, but not requested yet
  int held = 0;                     ///< batches returned by get() and not released yet
  double wait_seconds = 0;          ///< time that get() blocked, summed over all callers
};

/// The index of each of `names` in `features`. Throws Error(configuration) for an input of the model without a feature.
[[nodiscard]] std::vector<std::size_t> find_features(const std::vector<std::string>& names,
                                                     const std::vector<Feature>& features);

class Loader final : public InputSource {
 public:
  /// `set` must outlive the loader. Throws Error(configuration) for a batch larger than the set, and like
  /// find_features().
  Loader(const DataSet& set, Pipeline pipeline, const LoaderOptions& options);
  ~Loader() override;
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Sets the micro-batches that this rank computes, from this step on, until the next call. May be called during
  /// training, for steps of which no batch has been requested yet; batches loaded ahead for other micro-batches are
  /// dropped.
  void assign(std::uint64_t from_step, std::vector<int> micro_batches);

  /// Blocks until the batch is ready. Thread-safe. The batch is valid until release(). Rethrows errors from reading or
  /// augmenting.
  [[nodiscard]] const Batch& get(std::uint64_t step, int micro_batch);
  /// The same, in the form that workers need.
  void get(std::uint64_t step, int micro_batch, MicroBatchInputs& inputs) override;
  void release(std::uint64_t step, int micro_batch) override;
  /// Batches that background threads begin from now on are recorded as spans; null: not recorded.
  void trace(std::shared_ptr<TraceRecorder> recorder);

  std::int64_t micro_batch_samples() const { return micro_batch_samples_; }
  double wait_seconds() const { return counters().wait_seconds; }
  LoaderCounters counters() const;

 private:
  struct Slot;
  using Lock = std::unique_lock<std::mutex>;

  // Making batches: called by several threads concurrently, each with its own slot.
  std::int64_t buffer_bytes() const;
  std::unique_ptr<Slot> make_slot() const;
  void make_batch(Slot& slot);

  // Bookkeeping of batches: mutex_ is held, but released while fill() makes one.
  Slot* find(const MicroBatchKey& key);
  Slot& take_slot(const MicroBatchKey& key);
  void fill(Slot& slot, Lock& lock);
  void load_ahead(Slot& slot, int thread, Lock& lock);
  void free(Slot& slot);
  void set_ahead(Slot& slot, bool ahead);
  bool has_work(int thread);
  void load(int thread);
  void keep_threads();

  const DataSet& set_;
  Pipeline pipeline_;
  bool drawn_;
  std::vector<Feature> features_;  ///< by tensor of a batch
  std::int64_t micro_batch_samples_;
  std::optional<Mixer> mixer_;
  std::unique_ptr<SampleOrder> order_;
  SampleCache cache_;
  std::vector<std::size_t> inputs_;  ///< by tensor returned: its index in a batch
  std::shared_ptr<FlightRecorder> recorder_;

  mutable std::mutex mutex_;  ///< guards all that follows
  std::condition_variable work_, ready_;
  PrefetchSchedule schedule_;
  PrefetchTuner tuner_;
  std::vector<std::unique_ptr<Slot>> slots_;  ///< never shrinks; addresses are stable
  std::vector<std::thread> threads_;
  int ahead_ = 0;  ///< slots with `ahead`
  bool stop_ = false;
  std::shared_ptr<TraceRecorder> trace_;
  LoaderCounters counters_;
};

}  // namespace lockstep::data
