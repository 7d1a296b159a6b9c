#include "comm/reduce/all_reduce_gpu.hpp"

#include <algorithm>
#include <utility>

#include "comm/transport/topology.hpp"
#include "core/ran_time.hpp"
#include "core/spans.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

float* GpuBufferMemory::allocate(std::int64_t elements) {
  const auto bytes = (std::max<std::int64_t>(elements, 1)) * sizeof(float);
  Block block{device::GpuBlock(gpu_, bytes), gpu_.make_event(), gpu_.make_event()};
  auto* const memory = block.memory.as<float>();
  // Buckets are added as a whole, including the gaps between tensors, which kernels never write.
  gpu_.clear(stream_, block.memory.get(), bytes);
  gpu_.record(block.free, stream_);
  const std::lock_guard lock(mutex_);
  blocks_.emplace(memory, std::move(block));
  return memory;
}

void GpuBufferMemory::add(float* left, float* right, std::int64_t elements) {
  gpu_.add(stream_, left, right, left, elements);
  gpu_.record(buffer(right).free, stream_);
}

GradientBuffer GpuBufferMemory::buffer(float* memory) const {
  const std::lock_guard lock(mutex_);
  const Block& block = blocks_.at(memory);
  return {memory, false, block.free, block.written};
}

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr microseconds kPoll{20};
constexpr milliseconds kCheckGpuPeers{100};

std::unique_ptr<GpuBufferMemory> gpu_buffer_memory(device::Gpu& gpu) {
  gpu.make_current();
  return std::make_unique<GpuBufferMemory>(gpu, gpu.make_kernel_stream());
}

}  // namespace

GpuAllReduce::GpuAllReduce(Communicator& communicator, GradientBuckets buckets, ReducerOptions options,
                           device::Gpu& gpu, std::unique_ptr<GpuTransport> transport)
    : RankReducer(communicator, std::move(buckets), options, gpu_buffer_memory(gpu)),
      gpu_(gpu),
      transport_(std::move(transport)),
      transport_stream_(gpu.make_kernel_stream()),
      whole_(gpu.make_event()),
      released_(gpu.make_event()),
      begun_(gpu.make_event()),
      passed_(gpu.make_event()),
      roots_(buckets_.buckets.size()) {
  LOCKSTEP_CHECK(transport_ != nullptr || ranks() == 1, "several ranks have a transport between them");
  buckets_.spread_owners = false;  // all_gather() needs slices in rank order
  options_.streamed = streams_any(buckets_, options_, ranks());
  if (options_.streamed) {
    stream_ =
        std::make_unique<GpuStreamedSums>(gpu, transport_stream_, buckets_, hosts_, communicator.rank(), options_);
  }
  for (int b = 0; b < bucket_count(); ++b) {
    summed_.push_back(gpu.make_event());
    bounds_.push_back(slice_bounds(buckets_.at(b), ranks()));
  }
  if (transport_) transport_thread_ = std::thread([this] { run_transport_thread(); });
}

GpuAllReduce::~GpuAllReduce() {
  // After an error that finish() did not see, other ranks may never send what this rank's GPU waits for.
  if (transport_ && std::uncaught_exceptions() > exceptions_) abort();
  if (transport_thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    transport_thread_.join();
  }
  try {
    gpu_.make_current();
    gpu_.record(begun_, gpu_memory().stream());
    gpu_.record(whole_, transport_stream_);  // an error may have occurred between two buckets
    for (const Event event : {begun_, whole_, released_}) gpu_.wait(event);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the GPU is lost, and its memory with it
  }
}

float* GpuAllReduce::root(int number, int bucket) const {
  return roots_[bucket][number];
}

void GpuAllReduce::begin_step(std::uint64_t step, const MicroBatchAssignment& assignment) {
  gpu_.make_current();
  step_ = step;
  if (transport_) transport_->enter(step);
  if (assignment != assignment_) {
    measure(assignment);
    make_plan(assignment);
  }
  map_regions(0, {});
  enter_step(step, assignment);
  sums_.begin([this](int number, int bucket) { return root(number, bucket); });
  gpu_.wait(transport_stream_, released_);
  gpu_.record(begun_, transport_stream_);
  if (own_roots_ == 0 && !options_.exact) {
    for (int b = 0; b < bucket_count(); ++b) {
      gpu_.clear(transport_stream_, reinterpret_cast<std::byte*>(root(0, b)), elements(b) * sizeof(float));
    }
  }
  {
    const std::lock_guard lock(mutex_);
    missing_.clear();
    for (const auto& [wave, bucket] : exchanges_)
      missing_.push_back(streams(bucket) ? stream_->own_leaves(wave) : own_roots_);
    next_ = 0;
    running_ = turns_ == nullptr;
  }
  changed_.notify_all();
}

GradientBuffer GpuAllReduce::buffer(int micro_batch, int bucket) {
  if (streams(bucket)) {
    wait_for_room(micro_batch, bucket);
    return stream_->buffer(micro_batch, bucket);
  }
  GradientBuffer buffer = gpu_memory().buffer(sums_.buffer(micro_batch, bucket).memory);
  if (merge_plan_.memory_of_leaf[micro_batch] >= 0) buffer.free = begun_;
  return buffer;
}

// The host waits, too, so that a rank that is gone is noticed, and a worker that waits for its micro-batch's end waits
// for its own GPU only.
void GpuAllReduce::wait_for_room(int micro_batch, int bucket) {
  const auto before = stream_->before(micro_batch, bucket);
  if (!before) return;
  const int exchange = number_of(before->wave, before->bucket);
  auto start = Clock::now();
  RanTime ran(start);
  {
    std::unique_lock lock(mutex_);
    for (int seen = next_; next_ <= exchange;) {
      if (error_) std::rethrow_exception(error_);
      if (options_.stop != nullptr && *options_.stop) {
        throw Error(ExitCode::infrastructure, "another worker of this rank has failed");
      }
      communicator_.check_peers();
      const auto now = Clock::now();
      (void)ran.look(now);
      if (std::exchange(seen, next_) != next_) start = now;
      start = latest_progress(start, options_.watch);
      if (now - start >= options_.timeout + ran.stopped()) {
        throw_deadline(communicator_.topology(), rank(), -1, operation("reduce"), seconds_since(start),
                       "earlier gradients have not been sent");
      }
      changed_.wait_for(lock, kCheckGpuPeers);
    }
  }
  wait_for(stream_->exchanged(before->bucket), "reduce", "slices of gradients");
}

void GpuAllReduce::ready(int micro_batch, int bucket) {
  if (streams(bucket)) {
    recorder_->note("partial", -1, elements(bucket) * sizeof(float));
    const std::lock_guard lock(mutex_);
    ++statistics_.partials_sent;
    if (--missing_[number_of(stream_->wave_of(micro_batch), bucket)] == 0) {
      changed_.notify_all();
    }
    return;
  }
  GpuBufferMemory& sums = gpu_memory();
  sums.written(sums_.memory_of(micro_batch, bucket));
  const auto finished = sums_.ready(micro_batch, bucket);
  if (!finished) return;
  recorder_->note("partial", -1, elements(bucket) * sizeof(float));
  const std::lock_guard lock(mutex_);
  ++statistics_.partials_sent;
  const int last = stream_ ? stream_->waves() - 1 : 0;
  if (--missing_[number_of(last, bucket)] > 0) return;
  gpu_.record(summed_[bucket], sums.stream());
  changed_.notify_all();
}

void GpuAllReduce::run_transport_thread() {
  std::unique_lock lock(mutex_);
  std::optional<Next> now;
  while (true) {
    changed_.wait(lock, [&] { return stop_ || (now = next()).has_value(); });
    if (stop_) return;
    GpuTurns* const turns = turns_;
    is_sending_ = true;
    lock.unlock();
    std::exception_ptr error;
    try {
      gpu_.make_current();
      now->is_turn ? turns->enqueue(now->number, *transport_, transport_stream_) : send(now->number);
    } catch (...) {
      error = std::current_exception();
    }
    if (error && turns != nullptr) turns->failed(error);
    lock.lock();
    is_sending_ = false;
    if (error) {
      error_ = error;
      running_ = false;
    }
    ++(now->is_turn ? next_turn_ : next_);
    changed_.notify_all();
  }
}

void GpuAllReduce::send(int exchange) {
  const auto [wave, bucket] = exchanges_[exchange];
  const std::size_t b = bucket;
  const TraceScope span(trace_, "messages", step_, kBucketTrack, bucket);
  const std::uint64_t entry = recorder_->enqueue("reduce", -1, rounds_[b].own.count * sizeof(float));
  recorder_->start(entry);
  if (streams(bucket)) {
    stream_->enqueue({wave, bucket}, *transport_, received_.as<float>(), reduced_[b].as<float>());
  } else {
    send_sums(bucket);
  }
  recorder_->finish(entry);
  if (!stream_ || wave + 1 == stream_->waves()) count_traffic(bucket);
}

void GpuAllReduce::send_sums(int bucket) {
  const std::size_t b = bucket;
  if (own_roots_ > 0) gpu_.wait(transport_stream_, summed_[b]);
  if (!options_.exact) return transport_->all_reduce_sum(root(0, bucket), elements(bucket), transport_stream_);
  reduce(bucket);
  if (!buckets_.at(bucket).scattered) {
    transport_->all_gather(reduced_[b].as<float>(), bounds_[b], transport_stream_);
  }
}

void GpuAllReduce::reduce(int bucket) {
  const std::size_t b = bucket;
  const GpuRounds& rounds = rounds_[b];
  const SliceMemory memory{roots_[b], received_.as<float>()};
  const auto messages = [&](const std::vector<GpuRounds::Message>& planned) {
    std::vector<GpuTransport::Message> found;
    for (const auto& message : planned) found.push_back({message.peer, memory.at(message.location), message.count});
    return found;
  };
  const auto run_round = [&](const GpuRounds::Round& round) {
    transport_->send_receive(messages(round.sends), messages(round.receives), transport_stream_);
  };
  run_round(rounds.inside);
  for (const auto& sum : rounds.gathered) add_slices(gpu_, transport_stream_, sum, memory);
  run_round(rounds.between);
  const std::int64_t to = buckets_.at(bucket).scattered ? 0 : rounds.first;
  add_slices(gpu_, transport_stream_, rounds.own, memory, reduced_[b].as<float>() + to);
}

// Bytes that must leave this rank according to the plan; NCCL may route them differently.
void GpuAllReduce::count_traffic(int bucket) {
  const std::lock_guard lock(mutex_);
  if (!options_.exact) {
    statistics_.network_bytes += elements(bucket) * sizeof(float);
    return;
  }
  const PlannedBytes& bytes = traffic_[bucket];
  statistics_.shared_memory_bytes += bytes.inside_host;
  statistics_.network_bytes += bytes.between_hosts;
}

void GpuAllReduce::abort() noexcept {
  if (aborted_.exchange(true)) return;
  try {
    if (before_abort_) before_abort_();
  } catch (...) {  // NOLINT(bugprone-empty-catch): it must not hide the error that led here
  }
  transport_->abort();
}

void GpuAllReduce::finish() {
  const ActivityScope activity(recorder_.get(), "reduce", step_);
  if (!transport_) {
    LOCKSTEP_CHECK(!lacks_gradients(), "finish() comes after ready() of every micro-batch");
    gpu_.record(whole_, gpu_memory().stream());
    gpu_.wait(transport_stream_, whole_);
    gpu_.record(whole_, transport_stream_);
    return;
  }
  const auto start = Clock::now();
  try {
    wait_until_issued();
    gpu_.record(whole_, transport_stream_);
  } catch (...) {
    abort();
    throw;
  }
  wait_for(whole_, "reduce", "slices of gradients");
  statistics_.seconds_waited += seconds_since(start);
}

bool GpuAllReduce::lacks_gradients() const {
  return std::any_of(missing_.begin(), missing_.end(), [](int missing) { return missing > 0; });
}

void GpuAllReduce::wait_until_issued() {
  std::unique_lock lock(mutex_);
  LOCKSTEP_CHECK(!lacks_gradients(), "finish() comes after ready() of every micro-batch");
  while (!all_issued() && !error_) {
    changed_.wait_for(lock, kCheckGpuPeers);
    communicator_.check_peers();
  }
  running_ = false;
  if (error_) std::rethrow_exception(error_);
}

void GpuAllReduce::wait_for(Event event, const char* name, const char* awaited) {
  auto start = Clock::now();
  RanTime ran(start);
  const Operation operation = this->operation(name);
  try {
    while (!gpu_.done(event)) {
      transport_->check(operation);
      communicator_.check_peers();
      start = latest_progress(start, options_.watch);
      const auto now = Clock::now();
      (void)ran.look(now);
      if (now - start >= options_.timeout + ran.stopped()) {
        recorder_->waits_for(-1, std::string(awaited) + " on GPUs");
        throw_deadline(communicator_.topology(), rank(), -1, operation, seconds_since(start),
                       std::string(awaited) + " have not come to its GPU");
      }
      std::this_thread::sleep_for(kPoll);
    }
  } catch (...) {
    abort();
    throw;
  }
}

void GpuAllReduce::broadcast(std::span<const GpuTransport::Owned> list, Stream stream) {
  move_between(stream, [&](Stream on) { transport_->broadcast(list, on); });
}

void GpuAllReduce::send_receive(std::span<const GpuTransport::Message> sends,
                                std::span<const GpuTransport::Message> receives, Stream stream) {
  move_between(stream, [&](Stream on) { transport_->send_receive(sends, receives, on); });
}

void GpuAllReduce::move_between(Stream stream, const std::function<void(Stream)>& move) {
  try {
    gpu_.record(passed_, stream);
    gpu_.wait(transport_stream_, passed_);
    move(transport_stream_);
    gpu_.record(passed_, transport_stream_);
    gpu_.wait(stream, passed_);
  } catch (...) {
    abort();
    throw;
  }
}

std::span<const float> GpuAllReduce::reduced(int bucket) const {
  const bool gathered = transport_ && options_.exact;
  const std::size_t b = bucket;
  const float* memory = gathered ? reduced_[b].as<float>() : root(0, bucket);
  const bool is_slice = gathered && buckets_.at(bucket).scattered;
  return {memory, static_cast<std::size_t>(is_slice ? rounds_[b].own.count : elements(bucket))};
}

const float* GpuAllReduce::sum_at(int bucket, std::int64_t element) const {
  const std::span<const float> sums = reduced(bucket);
  const std::int64_t first = std::ssize(sums) < elements(bucket) ? rounds_[bucket].first : 0;
  LOCKSTEP_CHECK(element >= first && element - first < std::ssize(sums), "a sum that this rank has");
  return sums.data() + (element - first);
}

std::vector<float> GpuAllReduce::fetch(int bucket) const {
  const auto sums = reduced(bucket);
  const device::PinnedBlock pinned(gpu_, sums.size_bytes());
  gpu_.copy_out(transport_stream_, pinned.get(), reinterpret_cast<const std::byte*>(sums.data()), sums.size_bytes());
  const Event copied = gpu_.make_event();
  gpu_.record(copied, transport_stream_);
  gpu_.wait(copied);
  gpu_.reads(pinned.get(), sums.size_bytes());
  const auto* const first = pinned.as<float>();
  return {first, first + sums.size()};
}

ReducerStatistics GpuAllReduce::statistics() const {
  ReducerStatistics result = statistics_;
  result.seconds_waited += scalar_seconds_;
  result.peak_elements = sums_.peak_pool_elements() + (stream_ ? stream_->elements() : 0);
  for (int b = 0; b < bucket_count(); ++b)
    result.peak_elements += streams(b) ? 0 : std::max(own_roots_, 1) * elements(b);
  return result;
}

}  // namespace lockstep::comm
