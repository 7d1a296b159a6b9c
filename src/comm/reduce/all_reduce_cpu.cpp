// The exact all-reduce, following one bucket: a worker writes its gradients and publishes the partial sums that they
// complete; the owner of a slice adds those of all ranks, and every host gets the result.
//
// Everything that waits for other ranks runs under progress_mutex_, on the progress thread or, in finish(), on the main
// thread.
#include "comm/reduce/all_reduce_cpu.hpp"

#include <algorithm>

#include "core/spans.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

GradientBuffer CpuAllReduce::buffer(int micro_batch, int bucket) {
  if (!streams(bucket)) return sums_.buffer(micro_batch, bucket);
  const auto start = Clock::now();
  RanTime ran(start);
  return {stream_->open(micro_batch, bucket, [&] { check_room(micro_batch, start, ran); }), false};
}

void CpuAllReduce::ready(int micro_batch, int bucket) {
  if (streams(bucket)) {
    stream_->publish(micro_batch, bucket);
    count_published(bucket);
  } else if (const auto root = sums_.ready(micro_batch, bucket)) {
    if (trace_ != nullptr) note_published(bucket);  // before others can see it: the bucket may be whole a moment later
    own_region().partial_ready(*root, bucket).store(epoch_, std::memory_order_release);
    ring_peers();
    count_published(bucket);
  }
}

void CpuAllReduce::note_published(int bucket) {
  const std::lock_guard lock(published_mutex_);
  published_at_[bucket] = steady_seconds();
}

void CpuAllReduce::count_published(int bucket) {
  shared_bytes_ += given_bytes_[bucket];
  recorder_->note("partial", -1, elements(bucket) * sizeof(float));
  ++partials_sent_;
  ++published_;
}

bool CpuAllReduce::advance() {
  bool moved = stream_ && stream_->advance(trace_, step_);
  moved = gather_host_sums() || moved;
  moved = open_sums() || moved;
  moved = reduce_buckets() || moved;
  moved = take_received_slices() || moved;
  moved = look_for_slices() || moved;
  if (moved) last_progress_ = Clock::now();
  return moved;
}

bool CpuAllReduce::open_sums() {
  if (sums_open_) return false;
  for (const Region& region : regions_) {
    if (region.begun().load(std::memory_order_acquire) < epoch_) return false;
  }
  sums_open_ = true;
  for (std::size_t i = 0; i < led_.size(); ++i) {
    const PlannedSlice& led = plan(led_[i].bucket).at(led_[i].number);
    receives_.push_back(communicator_.receive(bytes(sum(led_[i].bucket) + led.first, led.size), led.owner,
                                              reduced_tag(led_[i].bucket),
                                              [&mine = doorbell(), i, arrivals = arrivals_] {
                                                {
                                                  const std::lock_guard lock(arrivals->mutex);
                                                  arrivals->of_led.push_back(i);
                                                }
                                                mine.ring();
                                              }));
  }
  for (int b = 0; b < bucket_count() && merged_.plan.host_sums.empty(); ++b) {  // the host has no micro-batch
    if (plan(b).scattered) publish_led(b);
  }
  return true;
}

// Sends a host's sum as soon as all its parts are there, while other micro-batches and buckets are still computed.
bool CpuAllReduce::gather_host_sums() {
  return std::erase_if(to_gather_, [&](int number) {
           const GatherTask& task = gather_tasks_[number];
           const auto& parts = host_sum(task).parts;
           const bool all =
               std::all_of(parts.begin(), parts.end(), [&](const Partial& part) { return here(part, task.bucket); });
           if (all) gather(task);
           return all;
         }) > 0;
}

void CpuAllReduce::gather(const GatherTask& task) {
  const auto& parts = host_sum(task).parts;
  for (const int number : plan(task.bucket).led) {
    const PlannedSlice& led = plan(task.bucket).at(number);
    const auto start = Clock::now();
    sources_.clear();
    for (const Partial& part : parts) sources_.push_back(memory_of(part, task.bucket, number));
    const float* source = sources_[0];
    if (parts.size() > 1 || parts[0].rank != rank()) {
      float* const to = floats(host_sums_[task.sum], place(task.bucket, number));
      sums_of(task.bucket).of_host[task.sum].run(to, sources_, led.size);
      source = to;
    }
    seconds_reducing_ += seconds_since(start);
    send(std::as_bytes(std::span(source, static_cast<std::size_t>(led.size))), led.owner,
         partial_tag(task.bucket, task.sum));
  }
  if (--to_gather_of_[task.bucket] == 0) publish_led(task.bucket);
}

void CpuAllReduce::send(std::span<const std::byte> slice, int to, int tag) {
  sends_.push_back(communicator_.send(slice, to, tag));
  network_bytes_ += slice.size();
}

bool CpuAllReduce::here(const Partial& partial, int bucket) const {
  if (streams(bucket)) return stream_->has(partial.root, bucket);
  return region_of(partial.rank).partial_ready(partial.root, bucket).load(std::memory_order_acquire) == epoch_;
}

const float* CpuAllReduce::memory_of(const Partial& partial, int bucket, int number) const {
  if (streams(bucket)) return streamed_sum(partial.root, bucket, number);
  return region_of(partial.rank).partial(partial.root, bucket) + plan(bucket).at(number).first;
}

// With a single host, the sum of its only subtree is the whole sum.
float* CpuAllReduce::streamed_sum(int subtree, int bucket, int number) const {
  if (hosts_.count() == 1) return sum(bucket) + plan(bucket).at(number).first;
  return floats(host_sums_[subtree], place(bucket, number));
}

bool CpuAllReduce::reduce_buckets() {
  if (!sums_open_) return false;
  return std::erase_if(to_reduce_, [&](int bucket) {
           const auto& partials = sum_plan(bucket).partials;
           std::size_t& seen = seen_[bucket];
           while (seen < partials.size() && here(partials[seen], bucket)) ++seen;
           while (seen >= partials.size() && seen < partials.size() + received_.size() &&
                  received_[seen - partials.size()].transfers[bucket]->done()) {
             ++seen;
           }
           if (seen < partials.size() + received_.size()) return false;
           reduce(bucket);
           return true;
         }) > 0;
}

void CpuAllReduce::reduce(int bucket) {
  const auto start = Clock::now();
  const TraceScope span(trace_, "add", step_, kReduceTrack, bucket);
  const std::size_t b = bucket;
  const int own = plan(bucket).own;
  const std::int64_t size = plan(bucket).own_size();
  const std::uint64_t entry = recorder_->enqueue("reduce", -1, size * sizeof(float));
  recorder_->start(entry);
  sources_.clear();
  for (const Partial& partial : sum_plan(bucket).partials) sources_.push_back(memory_of(partial, bucket, own));
  for (const Received& other : received_) sources_.push_back(floats(other.memory, own_at_[b]));
  float* const result = sum(bucket) + plan(bucket).at(own).first;
  if (sources_[0] != result) sums_of(bucket).whole.run(result, sources_, size);
  recorder_->finish(entry);
  seconds_reducing_ += seconds_since(start);
  reduced_[b] = 1;
  publish_slice(bucket, own);
  if (plan(bucket).scattered) return;
  shared_bytes_ += size * sizeof(float) * (regions_.size() - 1);
  for (int host = 0; host < hosts_.count(); ++host) {
    if (host != own_host()) send(bytes(result, size), hosts_.leader(host, rank()), reduced_tag(bucket));
  }
}

// Announces that this rank needs nothing more for the slice from the host's ranks, and that it is in the host's sums,
// unless the bucket is scattered. Only the last slice of a bucket wakes the ranks.
void CpuAllReduce::publish_slice(int bucket, int number) {
  if (streams(bucket)) return;
  regions_[0].slice_ready(number, bucket).store(epoch_, std::memory_order_release);
  if (regions_[0].slices_counted(bucket).fetch_add(1, std::memory_order_acq_rel) + 1 == slices_until_whole(bucket)) {
    ring_peers();
  }
}

// The slices of a scattered bucket that this rank leads for owners on other hosts are not received.
void CpuAllReduce::publish_led(int bucket) {
  if (!plan(bucket).scattered) return;
  for (const int number : plan(bucket).led) publish_slice(bucket, number);
}

bool CpuAllReduce::take_received_slices() {
  {
    const std::lock_guard lock(arrivals_->mutex);
    arrived_.insert(arrived_.end(), arrivals_->of_led.begin(), arrivals_->of_led.end());
    arrivals_->of_led.clear();
  }
  const auto published_now = std::erase_if(arrived_, [&](int index) {
    const std::size_t i = index;
    if (!receives_[i]->done()) return false;
    publish_slice(led_[i].bucket, led_[i].number);
    return true;
  });
  to_receive_ -= published_now;
  return published_now > 0;
}

bool CpuAllReduce::is_whole(int bucket) const {
  const std::size_t b = bucket;
  if (streams(bucket)) {
    return stream_->read(bucket) && to_gather_of_[b] == 0 && (plan(bucket).own < 0 || reduced_[b] != 0);
  }
  return regions_[0].slices_counted(bucket).load(std::memory_order_acquire) >= slices_until_whole(bucket);
}

bool CpuAllReduce::look_for_slices() {
  return std::erase_if(to_see_, [&](int bucket) {
           if (!is_whole(bucket)) return false;
           if (trace_ != nullptr && !streams(bucket)) trace_whole_bucket(bucket);
           return true;
         }) > 0;
}

// The span of a bucket: from this rank's last partial sum of it until every slice of it has arrived.
void CpuAllReduce::trace_whole_bucket(int bucket) {
  const std::lock_guard lock(published_mutex_);
  trace_->add({.name = "bucket",
               .track = kBucketTrack,
               .step = step_,
               .item = bucket,
               .start = published_at_[bucket],
               .end = steady_seconds()});
}

void CpuAllReduce::finish() {
  LOCKSTEP_CHECK(published_ == to_publish_, "finish() comes after ready() of every micro-batch and bucket");
  {
    const std::lock_guard lock(progress_mutex_);
    running_ = false;  // from here on, this thread makes the progress
    if (error_) std::rethrow_exception(error_);
  }
  const ActivityScope activity(recorder_.get(), "reduce", step_);
  wait_for_slices();
  const auto start = Clock::now();
  for (const auto& transfer : sends_) transfer->wait(operation("reduce"));
  sends_.clear();
  seconds_waited_ += seconds_since(start);
  const std::lock_guard lock(progress_mutex_);
  receives_.clear();
  for (Received& other : received_) {
    for (auto& transfer : other.transfers) transfer.reset();
  }
}

float* CpuAllReduce::sum(int bucket) const {
  return plan(bucket).scattered ? floats(scattered_, starts_[bucket]) : regions_[0].sums(bucket);
}

std::span<const float> CpuAllReduce::reduced(int bucket) const {
  return {sum(bucket), static_cast<std::size_t>(elements(bucket))};
}

}  // namespace lockstep::comm
