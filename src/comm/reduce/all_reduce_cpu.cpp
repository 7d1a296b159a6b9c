// The exact all-reduce, following one bucket: a worker writes its gradients and publishes the partial sums that they
// complete; the owner of a slice adds those of all ranks, and every host gets the result.
//
// Everything that waits for other ranks runs under progress_mutex_, on the progress thread or, in finish(), on the main
// thread.
#include "comm/reduce/all_reduce_cpu.hpp"

#include <algorithm>

#include "core/round_up.hpp"
#include "core/spans.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

GradientBuffer CpuAllReduce::buffer(int micro_batch, int bucket) {
  return sums_.buffer(micro_batch, bucket);
}

void CpuAllReduce::ready(int micro_batch, int bucket) {
  if (const auto root = sums_.ready(micro_batch, bucket)) publish(*root, bucket);
}

void CpuAllReduce::publish(int root, int bucket) {
  if (trace_ != nullptr) {  // before others can see it: the bucket may be whole a moment later
    const std::lock_guard lock(published_mutex_);
    published_at_[static_cast<std::size_t>(bucket)] = steady_seconds();
  }
  own_region().partial_ready(root, bucket).store(epoch_, std::memory_order_release);
  ring_peers();
  shared_bytes_ += given_bytes_[static_cast<std::size_t>(bucket)];
  recorder_->note("partial", -1, static_cast<std::uint64_t>(elements(bucket)) * sizeof(float));
  ++partials_sent_;
  ++published_;
}

bool CpuAllReduce::advance() {
  bool moved = gather_host_sums();
  moved = open_sums() || moved;
  moved = reduce_buckets() || moved;
  moved = take_received_slices() || moved;
  return look_for_slices() || moved;
}

bool CpuAllReduce::open_sums() {
  if (sums_open_) return false;
  for (const Region& region : regions_) {
    if (region.begun().load(std::memory_order_acquire) < epoch_) return false;
  }
  sums_open_ = true;
  const Region& mine = own_region();
  for (std::size_t i = 0; i < led_.size(); ++i) {
    const PlannedSlice& led = slice(led_[i]);
    const int bucket = led_[i].bucket;
    receives_.push_back(communicator_.receive(bytes(regions_[0].sums(bucket) + led.first, led.size), led.owner,
                                              reduced_tag(bucket), [&mine, i, arrivals = arrivals_] {
                                                {
                                                  const std::lock_guard lock(arrivals->mutex);
                                                  arrivals->of_led.push_back(static_cast<int>(i));
                                                }
                                                mine.doorbell().ring();
                                              }));
  }
  for (int b = 0; b < bucket_count() && plan_.sums.host_sums.empty();
       ++b) {  // if no rank of the host has a micro-batch
    if (plan(b).scattered) publish_led(b);
  }
  return true;
}

// Adds a host's sum as soon as all its parts are published, while other micro-batches and buckets are still computed.
bool CpuAllReduce::gather_host_sums() {
  return std::erase_if(to_gather_, [&](int number) {
           const GatherTask& task = gather_tasks_[static_cast<std::size_t>(number)];
           const auto& parts = plan_.sums.host_sums[static_cast<std::size_t>(task.sum)].parts;
           const bool all = std::all_of(parts.begin(), parts.end(), [&](const Partial& part) {
             return published(part.rank, part.root, task.bucket);
           });
           if (all) gather(task);
           return all;
         }) > 0;
}

void CpuAllReduce::gather(const GatherTask& task) {
  Gathered& sum = gathered_[static_cast<std::size_t>(task.sum)];
  const auto& parts = plan_.sums.host_sums[static_cast<std::size_t>(task.sum)].parts;
  float* memory = reinterpret_cast<float*>(sum.memory.data()) + task.at;
  for (const int number : plan(task.bucket).led) {
    const PlannedSlice& led = plan(task.bucket).at(number);
    const auto start = Clock::now();
    sources_.clear();
    for (const Partial& part : parts) {
      sources_.push_back(region_of(part.rank).partial(part.root, task.bucket) + led.first);
    }
    const float* source = sources_[0];
    if (parts.size() > 1 || parts[0].rank != rank()) {
      sum.combiner.run(memory, sources_, led.size);
      source = memory;
    }
    memory += whole_lines(led.size);
    seconds_reducing_ += seconds_since(start);
    send(std::as_bytes(std::span(source, static_cast<std::size_t>(led.size))), led.owner,
         partial_tag(task.bucket, task.sum));
  }
  if (--to_gather_of_[static_cast<std::size_t>(task.bucket)] == 0 && plan(task.bucket).scattered) {
    publish_led(task.bucket);
  }
}

void CpuAllReduce::send(std::span<const std::byte> slice, int to, int tag) {
  sends_.push_back(communicator_.send(slice, to, tag));
  network_bytes_ += slice.size();
}

bool CpuAllReduce::here(const Operand& operand, int bucket) const {
  if (local(operand.rank)) return published(operand.rank, operand.root, bucket);
  return operand.transfers[static_cast<std::size_t>(bucket)]->done();
}

bool CpuAllReduce::reduce_buckets() {
  if (!sums_open_) return false;
  return std::erase_if(to_reduce_, [&](int bucket) {
           std::size_t& seen = seen_[static_cast<std::size_t>(bucket)];
           while (seen < operands_.size() && here(operands_[seen], bucket)) ++seen;
           if (seen < operands_.size()) return false;
           reduce(bucket);
           return true;
         }) > 0;
}

void CpuAllReduce::reduce(int bucket) {
  const auto start = Clock::now();
  const TraceScope span(trace_, "add", step_, kReduceTrack, bucket);
  const auto b = static_cast<std::size_t>(bucket);
  const std::int64_t first = plan(bucket).at(plan(bucket).own).first, size = plan(bucket).own_size();
  const std::uint64_t entry = recorder_->enqueue("reduce", -1, static_cast<std::uint64_t>(size) * sizeof(float));
  recorder_->start(entry);
  sources_.clear();
  for (const Operand& operand : operands_) {
    sources_.push_back(local(operand.rank)
                           ? region_of(operand.rank).partial(operand.root, bucket) + first
                           : reinterpret_cast<const float*>(operand.received.data()) + own_slice_at_[b]);
  }
  float* sum = regions_[0].sums(bucket) + first;
  combiner_.run(sum, sources_, size);
  recorder_->finish(entry);
  seconds_reducing_ += seconds_since(start);
  publish_slice(bucket, plan(bucket).own);
  if (plan(bucket).scattered) return;
  shared_bytes_ += static_cast<std::uint64_t>(size) * sizeof(float) * (regions_.size() - 1);
  for (int host = 0; host < hosts_.count(); ++host) {
    if (host != own_host()) send(bytes(sum, size), hosts_.leader(host, rank()), reduced_tag(bucket));
  }
}

// Announces that this slice of the bucket is in the host's sums. Only the last slice of a bucket wakes the ranks.
void CpuAllReduce::publish_slice(int bucket, int number) {
  regions_[0].slice_ready(number, bucket).store(epoch_, std::memory_order_release);
  if (regions_[0].slices_counted(bucket).fetch_add(1, std::memory_order_acq_rel) + 1 == slices_until_whole(bucket)) {
    ring_peers();
  }
}

// For a scattered bucket: the slices that this rank leads for owners on other hosts need nothing more on this host.
void CpuAllReduce::publish_led(int bucket) {
  for (const int number : plan(bucket).led) publish_slice(bucket, number);
}

bool CpuAllReduce::take_received_slices() {
  {
    const std::lock_guard lock(arrivals_->mutex);
    arrived_.insert(arrived_.end(), arrivals_->of_led.begin(), arrivals_->of_led.end());
    arrivals_->of_led.clear();
  }
  const auto published_now = std::erase_if(arrived_, [&](int index) {
    const auto i = static_cast<std::size_t>(index);
    if (!receives_[i]->done()) return false;
    publish_slice(led_[i].bucket, led_[i].number);
    return true;
  });
  to_receive_ -= published_now;
  return published_now > 0;
}

bool CpuAllReduce::look_for_slices() {
  return std::erase_if(to_see_, [&](int bucket) {
           if (regions_[0].slices_counted(bucket).load(std::memory_order_acquire) < slices_until_whole(bucket)) {
             return false;
           }
           if (trace_ != nullptr) trace_whole_bucket(bucket);
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
               .start = published_at_[static_cast<std::size_t>(bucket)],
               .end = steady_seconds()});
}

void CpuAllReduce::finish() {
  LOCKSTEP_CHECK(published_ == static_cast<int>(plan_.sums.roots.size()) * bucket_count(),
                 "finish() comes after ready() of every micro-batch and bucket");
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
  // A message is done before its notification has rung this rank's doorbell, and the next step may map that elsewhere.
  const std::lock_guard lock(progress_mutex_);
  receives_.clear();
  for (Operand& operand : operands_) {
    for (auto& transfer : operand.transfers) transfer.reset();
  }
}

std::span<const float> CpuAllReduce::reduced(int bucket) const {
  return {regions_[0].sums(bucket), static_cast<std::size_t>(elements(bucket))};
}

}  // namespace lockstep::comm
