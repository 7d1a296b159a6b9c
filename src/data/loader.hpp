// Loader: what the executor's workers compute on, read and augmented ahead of time by background threads.
//
// What a batch holds depends on (job seed, step, shard) only, never on threads, depth or on who computes which
// shard. A get() that comes before its batch was begun makes it itself, so no order of gets can block.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/flight_recorder.hpp"
#include "core/input_source.hpp"
#include "core/trace.hpp"
#include "data/augment.hpp"
#include "data/prefetch.hpp"
#include "data/sample_cache.hpp"
#include "data/sampler.hpp"
#include "lockstep/data_set.hpp"

namespace lockstep::data {

/// Images are f32 [b, h, w, c], normalised; labels i32 [b]; tokens i32 [b, length].
struct Batch {
  std::vector<NamedTensor> tensors;  ///< in order of the pipeline's outputs
  std::vector<std::int64_t> ids;     ///< b of them
  std::int64_t valid = 0;            ///< samples that count; evaluation fills up with copies of the last one
};

struct LoaderOptions {
  std::int64_t batch = 0;  ///< global; a shard holds b = batch / shards samples
  int shards = 1;
  std::uint64_t seed = 0;
  std::uint64_t first_step = 0;  ///< where a resumed run starts
  std::uint64_t last_step = 0;   ///< nothing is loaded for this step or later ones
  std::int64_t cache_bytes = 0;  ///< budget for decoded samples; 0: no cache
  int threads = 0;               ///< 0: tuned
  int depth = 0;                 ///< batches ahead; 0: tuned
  int max_threads = 0;           ///< bound of the tuning; 0: this process's cores less one
  /// true: shuffled by epoch, the tail dropped. false: evaluation; shard i is samples i * b ... (i + 1) * b - 1,
  /// for evaluation_shards(size, b) shards, and a step is one evaluation: each gives the same batches.
  bool training = true;
  bool drawn = false;  ///< batches are of what Pipeline::draw() makes, and no sample is read
  /// The features that get() gives as ShardInputs, by name, in this order; all where there are none, and where batches
  /// are drawn.
  std::vector<std::string> inputs;
  std::shared_ptr<FlightRecorder> recorder;  ///< counts each shard that is done as work; may be null
};

struct LoaderCounters {
  int threads = 0;
  int depth = 0;
  std::int64_t cache_bytes = 0;
  std::int64_t buffer_bytes = 0;
  std::int64_t batches = 0;         ///< given out
  std::int64_t made_by_caller = 0;  ///< of these, by get() itself
  int ahead = 0;                    ///< batches that are loaded, or being so, and not asked for yet
  int held = 0;                     ///< batches given out and not released yet
  double wait_seconds = 0;          ///< time that get() blocked, over all callers
};

/// Where each of `names` is in `features`. Throws Error(configuration) for an input of the model that no feature feeds.
[[nodiscard]] std::vector<std::size_t> find_features(const std::vector<std::string>& names,
                                                     const std::vector<Feature>& features);

class Loader final : public InputSource {
 public:
  /// `set` must outlive the loader. Throws Error(configuration) for a batch larger than the set, and as
  /// find_features().
  Loader(const DataSet& set, Pipeline pipeline, const LoaderOptions& options);
  ~Loader() override;
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Which shards this rank computes, from this step on, until the next assign. May come while running, for
  /// steps of which no batch was asked yet; what was loaded ahead for other shards is dropped.
  void assign(std::uint64_t from_step, std::vector<int> shards);

  /// Blocks until the batch is ready; may be called by several threads at once. The batch stays valid until
  /// release(). Rethrows what reading or augmenting threw.
  [[nodiscard]] const Batch& get(std::uint64_t step, int shard);
  /// The same, as a worker takes it.
  void get(std::uint64_t step, int shard, ShardInputs& inputs) override;
  void release(std::uint64_t step, int shard) override;
  /// Batches that background threads begin from now on are spans of it; null: of none.
  void trace(std::shared_ptr<TraceRecorder> recorder);

  [[nodiscard]] std::int64_t shard_samples() const { return shard_samples_; }
  [[nodiscard]] double wait_seconds() const { return counters().wait_seconds; }
  [[nodiscard]] LoaderCounters counters() const;

 private:
  struct Slot;
  using Lock = std::unique_lock<std::mutex>;

  // What a batch is: called by several threads at once, each with a slot of its own.
  [[nodiscard]] std::int64_t buffer_bytes() const;
  [[nodiscard]] std::unique_ptr<Slot> make_slot() const;
  void make_batch(Slot& slot);

  // Which batches there are: mutex_ is held, and let go while fill() makes one.
  Slot* find(const ShardKey& key);
  Slot& take_slot(const ShardKey& key);
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
  std::int64_t shard_samples_;
  std::unique_ptr<SampleOrder> order_;
  SampleCache cache_;
  std::vector<std::size_t> inputs_;  ///< by tensor that is given: its place in a batch
  std::shared_ptr<FlightRecorder> recorder_;

  mutable std::mutex mutex_;  ///< of all that follows
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
