#include "data/loader.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "core/spans.hpp"
#include "data/loader_batch.hpp"
#include "data/prefetch.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

constexpr std::int64_t kMaxAheadBytes = std::int64_t{256} << 20;
constexpr std::int64_t kMaxDepth = 64;

/// Cores that this process may use.
int cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

PrefetchLimits limits(const LoaderOptions& options, std::int64_t buffer_bytes) {
  const std::int64_t by_memory = kMaxAheadBytes / std::max<std::int64_t>(1, buffer_bytes);
  return {.threads = options.threads,
          .depth = options.depth,
          .max_threads = options.max_threads > 0 ? options.max_threads : std::max(1, cores() - 1),
          .max_depth = static_cast<int>(std::clamp<std::int64_t>(by_memory, 2, kMaxDepth))};
}

struct Slot {
  enum class State { free, filling, ready, in_use } state = State::free;
  ShardKey key;
  bool ahead = false;    ///< loaded in the background and not asked for yet
  bool dropped = false;  ///< nobody wants it any more; freed as soon as it is filled
  std::exception_ptr error;
  BatchBuffer buffer;
};

}  // namespace

/// One mutex guards all that is not const; batches are filled outside it.
class Loader::Impl {
 public:
  Impl(const DataSet& set, Pipeline pipeline, const LoaderOptions& options)
      : maker_(set, std::move(pipeline), options),
        schedule_(options.first_step, options.last_step),
        tuner_(limits(options, maker_.buffer_bytes())) {}

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void assign(std::uint64_t from_step, std::vector<int> shards);
  const Batch& get(const ShardKey& key);
  void release(const ShardKey& key);
  void trace(std::shared_ptr<TraceRecorder> recorder);
  LoaderCounters counters() const;
  const BatchMaker& maker() const { return maker_; }

 private:
  using Lock = std::unique_lock<std::mutex>;
  Slot* find(const ShardKey& key);
  Slot& take_slot(const ShardKey& key);
  void fill(Slot& slot, Lock& lock);
  void load_ahead(Slot& slot, int thread, Lock& lock);
  void free(Slot& slot);
  void set_ahead(Slot& slot, bool ahead);
  bool has_work(int thread);
  void load(int thread);
  void keep_threads();

  BatchMaker maker_;
  mutable std::mutex mutex_;
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

Slot* Loader::Impl::find(const ShardKey& key) {
  for (const auto& slot : slots_) {
    if (slot->state != Slot::State::free && !slot->dropped && slot->key == key) return slot.get();
  }
  return nullptr;
}

Slot& Loader::Impl::take_slot(const ShardKey& key) {
  auto found = std::find_if(slots_.begin(), slots_.end(),
                            [](const auto& candidate) { return candidate->state == Slot::State::free; });
  if (found == slots_.end()) {
    auto fresh = std::make_unique<Slot>();
    fresh->buffer = maker_.make_buffer();
    counters_.buffer_bytes += maker_.buffer_bytes();
    found = slots_.insert(slots_.end(), std::move(fresh));
  }
  Slot& slot = **found;
  slot.key = key;
  slot.state = Slot::State::filling;
  slot.dropped = false;
  slot.error = nullptr;
  return slot;
}

void Loader::Impl::fill(Slot& slot, Lock& lock) {
  lock.unlock();
  std::exception_ptr error;
  try {
    maker_.fill(slot.key, slot.buffer);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  slot.error = error;
  slot.state = Slot::State::ready;
}

void Loader::Impl::free(Slot& slot) {
  set_ahead(slot, false);
  slot.state = Slot::State::free;
  slot.error = nullptr;
}

void Loader::Impl::set_ahead(Slot& slot, bool ahead) {
  ahead_ += static_cast<int>(ahead) - static_cast<int>(slot.ahead);
  slot.ahead = ahead;
}

bool Loader::Impl::has_work(int thread) {
  return thread < tuner_.threads() && ahead_ < tuner_.depth() && schedule_.peek().has_value();
}

void Loader::Impl::load_ahead(Slot& slot, int thread, Lock& lock) {
  const auto recorder = trace_;  // the run may end its timeline meanwhile
  set_ahead(slot, true);
  {
    const TraceScope span(recorder.get(), "load", slot.key.step, prefetch_track(thread), slot.key.shard);
    fill(slot, lock);
  }
  if (slot.dropped) free(slot);
}

/// The life of background thread number `thread`.
void Loader::Impl::load(int thread) {
  Lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return stop_ || has_work(thread); });
    if (stop_) return;
    const ShardKey key = *schedule_.peek();
    schedule_.pop();
    if (find(key) != nullptr) continue;  // planned again by assign(), and already here
    Slot& slot = take_slot(key);
    load_ahead(slot, thread, lock);
    ready_.notify_all();
  }
}

void Loader::Impl::keep_threads() {
  while (static_cast<int>(threads_.size()) < tuner_.threads()) {
    threads_.emplace_back([this, index = static_cast<int>(threads_.size())] { load(index); });
  }
}

void Loader::Impl::assign(std::uint64_t from_step, std::vector<int> shards) {
  const std::lock_guard lock(mutex_);
  schedule_.assign(from_step, std::move(shards));
  for (const auto& slot : slots_) {
    if (!slot->ahead || slot->key.step < from_step || schedule_.wants(slot->key)) continue;
    if (slot->state == Slot::State::filling) {
      slot->dropped = true;
    } else {
      free(*slot);
    }
  }
  keep_threads();
  work_.notify_all();
}

const Batch& Loader::Impl::get(const ShardKey& key) {
  const auto start = Clock::now();
  Lock lock(mutex_);
  Slot* slot = find(key);
  if (slot == nullptr) {
    schedule_.take(key);
    slot = &take_slot(key);
    fill(*slot, lock);
    ++counters_.made_by_caller;
  } else {
    ready_.wait(lock, [&] { return slot->state != Slot::State::filling; });
    LOCKSTEP_CHECK(slot->state == Slot::State::ready,
                   fmt::format("step {}, shard {}: asked twice", key.step, key.shard));
    set_ahead(*slot, false);
  }
  slot->state = Slot::State::in_use;
  const double waited = seconds_since(start);
  counters_.wait_seconds += waited;
  ++counters_.batches;
  tuner_.record(std::chrono::duration<double>(Clock::now().time_since_epoch()).count(), waited);
  if (!threads_.empty()) keep_threads();
  work_.notify_all();
  if (slot->error == nullptr) return slot->buffer.batch;
  const std::exception_ptr error = slot->error;
  free(*slot);
  std::rethrow_exception(error);
}

void Loader::Impl::release(const ShardKey& key) {
  const std::lock_guard lock(mutex_);
  Slot* slot = find(key);
  LOCKSTEP_CHECK(slot != nullptr && slot->state == Slot::State::in_use,
                 fmt::format("step {}, shard {}: released but not held", key.step, key.shard));
  free(*slot);
}

void Loader::Impl::trace(std::shared_ptr<TraceRecorder> recorder) {
  const std::lock_guard lock(mutex_);
  trace_ = std::move(recorder);
}

LoaderCounters Loader::Impl::counters() const {
  const std::lock_guard lock(mutex_);
  LoaderCounters counters = counters_;
  counters.threads = tuner_.threads();
  counters.depth = tuner_.depth();
  counters.ahead = ahead_;
  counters.held = static_cast<int>(
      std::count_if(slots_.begin(), slots_.end(), [](const auto& slot) { return slot->state == Slot::State::in_use; }));
  counters.cache_bytes = maker_.cache_bytes();
  return counters;
}

std::vector<std::size_t> find_features(const std::vector<std::string>& names, const std::vector<Feature>& features) {
  std::vector<std::size_t> found;
  for (const std::string& name : names) {
    const auto feature = std::find_if(features.begin(), features.end(), [&](const auto& f) { return f.name == name; });
    if (feature == features.end()) {
      throw Error(ExitCode::configuration, fmt::format("job.data: nothing feeds the model's input '{}'", name));
    }
    found.push_back(static_cast<std::size_t>(feature - features.begin()));
  }
  return found;
}

Loader::Loader(const DataSet& set, Pipeline pipeline, const LoaderOptions& options)
    : impl_(std::make_unique<Impl>(set, std::move(pipeline), options)), recorder_(options.recorder) {
  const std::vector<Feature>& features = impl_->maker().features();
  if (!options.inputs.empty() && !options.drawn) {
    inputs_ = find_features(options.inputs, features);
    return;
  }
  inputs_.resize(features.size());
  std::iota(inputs_.begin(), inputs_.end(), std::size_t{0});
}

Loader::~Loader() = default;

void Loader::assign(std::uint64_t from_step, std::vector<int> shards) {
  impl_->assign(from_step, std::move(shards));
}

const Batch& Loader::get(std::uint64_t step, int shard) {
  return impl_->get({step, shard});
}

void Loader::get(std::uint64_t step, int shard, ShardInputs& inputs) {
  const Batch& batch = get(step, shard);
  inputs.tensors.clear();
  for (const std::size_t input : inputs_) inputs.tensors.push_back(batch.tensors[input].tensor.bytes());
  inputs.valid = batch.valid;
}

void Loader::release(std::uint64_t step, int shard) {
  impl_->release({step, shard});
  if (recorder_) recorder_->tick();
}

void Loader::trace(std::shared_ptr<TraceRecorder> recorder) {
  impl_->trace(std::move(recorder));
}

std::int64_t Loader::shard_samples() const {
  return impl_->maker().shard_samples();
}

LoaderCounters Loader::counters() const {
  return impl_->counters();
}

}  // namespace lockstep::data
