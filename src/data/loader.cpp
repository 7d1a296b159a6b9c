#include "data/loader.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <numeric>
#include <utility>

#include "core/spans.hpp"
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

TensorSpec batched(const Feature& feature, std::int64_t samples) {
  TensorSpec spec = feature.spec;
  spec.shape.insert(spec.shape.begin(), samples);
  return spec;
}

std::int64_t samples_of_micro_batch(const LoaderOptions& options) {
  LOCKSTEP_CHECK(
      options.micro_batches > 0 && options.batch >= options.micro_batches && options.batch % options.micro_batches == 0,
      fmt::format("a batch of {} in {} micro-batches", options.batch, options.micro_batches));
  return options.batch / options.micro_batches;
}

std::unique_ptr<SampleOrder> order_of(const LoaderOptions& options, std::int64_t size) {
  return options.training ? make_training_order(size, options.batch, options.micro_batches, options.seed)
                          : make_evaluation_order(size);
}

}  // namespace

/// A batch, and scratch memory for making it.
struct Loader::Slot {
  enum class State { free, filling, ready, in_use } state = State::free;
  MicroBatchKey key;
  bool ahead = false;    ///< loaded in the background and not asked for yet
  bool dropped = false;  ///< not needed any more; freed as soon as it is filled
  std::exception_ptr error;
  Batch batch;
  Sample sample;
  PipelineScratch scratch;
  std::vector<std::byte*> outputs;
  std::vector<float> mixed;
};

Loader::Loader(const DataSet& set, Pipeline pipeline, const LoaderOptions& options)
    : set_(set),
      pipeline_(std::move(pipeline)),
      drawn_(options.drawn),
      features_(drawn_ ? pipeline_.drawn() : pipeline_.outputs()),
      micro_batch_samples_(samples_of_micro_batch(options)),
      order_(order_of(options, set.size())),
      cache_(set, drawn_ ? 0 : options.cache_bytes),
      recorder_(options.recorder),
      schedule_(options.first_step, options.last_step),
      tuner_(limits(options, buffer_bytes())) {
  if (options.mix) mixer_.emplace(*options.mix, options.seed, features_, micro_batch_samples_);
  if (!options.inputs.empty() && !options.drawn) {
    inputs_ = find_features(options.inputs, features_);
    return;
  }
  inputs_.resize(features_.size());
  std::iota(inputs_.begin(), inputs_.end(), std::size_t{0});
}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::int64_t Loader::buffer_bytes() const {
  std::size_t bytes = 0;
  for (const Feature& feature : features_) bytes += batched(feature, micro_batch_samples_).bytes();
  return bytes;
}

std::unique_ptr<Loader::Slot> Loader::make_slot() const {
  auto slot = std::make_unique<Slot>();
  slot->batch.ids.resize(micro_batch_samples_);
  for (const Feature& feature : features_) {
    slot->batch.tensors.push_back({feature.name, Tensor(batched(feature, micro_batch_samples_))});
  }
  slot->outputs.resize(features_.size());
  return slot;
}

// Ids from the order, samples from the set or the cache, tensors from the pipeline.
void Loader::make_batch(Slot& slot) {
  Batch& batch = slot.batch;
  batch.valid = order_->ids(slot.key.step, slot.key.micro_batch, batch.ids);
  const std::uint64_t epoch = order_->epoch_of(slot.key.step);
  for (std::size_t i = 0; i < batch.ids.size(); ++i) {
    const std::int64_t id = batch.ids[i];
    for (std::size_t k = 0; k < features_.size(); ++k) {
      slot.outputs[k] = batch.tensors[k].tensor.bytes() + i * features_[k].spec.bytes();
    }
    if (drawn_) {
      pipeline_.draw(id, epoch, slot.outputs);
      continue;
    }
    if (!cache_.load(id, slot.sample)) {
      set_.read_variant(id, order_->variant_of(epoch), slot.sample);
      cache_.store(id, slot.sample);
    }
    pipeline_.run(slot.sample, id, epoch, slot.scratch, slot.outputs);
  }
  if (mixer_) mixer_->mix_micro_batch(batch.tensors, batch.ids, epoch, slot.mixed);
}

Loader::Slot* Loader::find(const MicroBatchKey& key) {
  for (const auto& slot : slots_) {
    if (slot->state != Slot::State::free && !slot->dropped && slot->key == key) return slot.get();
  }
  return nullptr;
}

Loader::Slot& Loader::take_slot(const MicroBatchKey& key) {
  auto found = std::find_if(slots_.begin(), slots_.end(),
                            [](const auto& candidate) { return candidate->state == Slot::State::free; });
  if (found == slots_.end()) {
    found = slots_.insert(slots_.end(), make_slot());
    counters_.buffer_bytes += buffer_bytes();
  }
  Slot& slot = **found;
  slot.key = key;
  slot.state = Slot::State::filling;
  slot.dropped = false;
  slot.error = nullptr;
  return slot;
}

void Loader::fill(Slot& slot, Lock& lock) {
  lock.unlock();
  std::exception_ptr error;
  try {
    make_batch(slot);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  slot.error = error;
  slot.state = Slot::State::ready;
}

void Loader::free(Slot& slot) {
  set_ahead(slot, false);
  slot.state = Slot::State::free;
  slot.error = nullptr;
}

void Loader::set_ahead(Slot& slot, bool ahead) {
  ahead_ += static_cast<int>(ahead) - slot.ahead;
  slot.ahead = ahead;
}

bool Loader::has_work(int thread) {
  return thread < tuner_.threads() && ahead_ < tuner_.depth() && schedule_.peek().has_value();
}

void Loader::load_ahead(Slot& slot, int thread, Lock& lock) {
  const auto recorder = trace_;  // the run may end its timeline meanwhile
  set_ahead(slot, true);
  {
    const TraceScope span(recorder.get(), "load", slot.key.step, prefetch_track(thread), slot.key.micro_batch);
    fill(slot, lock);
  }
  if (slot.dropped) free(slot);
}

/// The main function of background thread number `thread`.
void Loader::load(int thread) {
  Lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return stop_ || has_work(thread); });
    if (stop_) return;
    const MicroBatchKey key = *schedule_.peek();
    schedule_.pop();
    if (find(key) != nullptr) continue;  // planned again by assign(), but already loaded
    Slot& slot = take_slot(key);
    load_ahead(slot, thread, lock);
    ready_.notify_all();
  }
}

void Loader::keep_threads() {
  while (static_cast<int>(threads_.size()) < tuner_.threads()) {
    threads_.emplace_back([this, index = static_cast<int>(threads_.size())] { load(index); });
  }
}

void Loader::assign(std::uint64_t from_step, std::vector<int> micro_batches) {
  const std::lock_guard lock(mutex_);
  schedule_.assign(from_step, std::move(micro_batches));
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

const Batch& Loader::get(std::uint64_t step, int micro_batch) {
  const auto start = Clock::now();
  const MicroBatchKey key{step, micro_batch};
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
                   fmt::format("step {}, micro-batch {}: asked twice", step, micro_batch));
    set_ahead(*slot, false);
  }
  slot->state = Slot::State::in_use;
  const double waited = seconds_since(start);
  counters_.wait_seconds += waited;
  ++counters_.batches;
  tuner_.record(std::chrono::duration<double>(Clock::now().time_since_epoch()).count(), waited);
  if (!threads_.empty()) keep_threads();
  work_.notify_all();
  if (slot->error == nullptr) return slot->batch;
  const std::exception_ptr error = slot->error;
  free(*slot);
  std::rethrow_exception(error);
}

void Loader::get(std::uint64_t step, int micro_batch, MicroBatchInputs& inputs) {
  const Batch& batch = get(step, micro_batch);
  inputs.tensors.clear();
  for (const std::size_t input : inputs_) inputs.tensors.push_back(batch.tensors[input].tensor.bytes());
  inputs.valid = batch.valid;
}

void Loader::release(std::uint64_t step, int micro_batch) {
  {
    const std::lock_guard lock(mutex_);
    Slot* slot = find({step, micro_batch});
    LOCKSTEP_CHECK(slot != nullptr && slot->state == Slot::State::in_use,
                   fmt::format("step {}, micro-batch {}: released but not held", step, micro_batch));
    free(*slot);
  }
  if (recorder_) recorder_->tick();
}

void Loader::trace(std::shared_ptr<TraceRecorder> recorder) {
  const std::lock_guard lock(mutex_);
  trace_ = std::move(recorder);
}

LoaderCounters Loader::counters() const {
  const std::lock_guard lock(mutex_);
  LoaderCounters counters = counters_;
  counters.threads = tuner_.threads();
  counters.depth = tuner_.depth();
  counters.ahead = ahead_;
  counters.held =
      std::count_if(slots_.begin(), slots_.end(), [](const auto& slot) { return slot->state == Slot::State::in_use; });
  counters.cache_bytes = cache_.bytes();
  return counters;
}

std::vector<std::size_t> find_features(const std::vector<std::string>& names, const std::vector<Feature>& features) {
  std::vector<std::size_t> found;
  for (const std::string& name : names) {
    const auto feature = std::find_if(features.begin(), features.end(), [&](const auto& f) { return f.name == name; });
    if (feature == features.end()) {
      throw Error(ExitCode::configuration, fmt::format("job.data: nothing feeds the model's input '{}'", name));
    }
    found.push_back(feature - features.begin());
  }
  return found;
}

}  // namespace lockstep::data
