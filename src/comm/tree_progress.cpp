// The exact exchange as an owner or a leader sees it: wait for partial sums, add them, hand the sums out. All of this
// runs under progress_mutex_, on the progress thread or, in finish(), on the main thread.
#include <algorithm>

#include "comm/exchange_tags.hpp"
#include "comm/tree_exchange.hpp"
#include "core/spans.hpp"

namespace lockstep::comm {

bool TreeExchange::advance() {
  bool moved = do_duties();
  moved = open_sums() || moved;
  moved = reduce_buckets() || moved;
  moved = take_received_slices() || moved;
  return look_for_slices() || moved;
}

bool TreeExchange::open_sums() {
  if (sums_open_) return false;
  for (const Region& region : regions_) {
    if (region.begun().load(std::memory_order_acquire) < epoch_) return false;
  }
  sums_open_ = true;
  const Region& mine = own_region();
  for (const Slice& slice : to_see_) {
    if (local(slice.owner) || hosts_.leader(own_host(), slice.owner) != rank()) continue;
    float* place = regions_[0].sums(slice.bucket) + slice_start(slice.bucket, slice.owner);
    to_receive_.push_back({slice.bucket, slice.owner,
                           communicator_.receive(bytes(place, slice_size(slice.bucket, slice.owner)), slice.owner,
                                                 reduced_tag(slice.bucket), [&mine] { mine.doorbell().ring(); })});
  }
  return true;
}

// As soon as all parts of a host's sum are here, while other shards and buckets are still computed.
bool TreeExchange::do_duties() {
  return std::erase_if(to_gather_, [&](const Duty& duty) {
           const auto& parts = gathered_[static_cast<std::size_t>(duty.sum)].parts;
           const bool all = std::all_of(parts.begin(), parts.end(), [&](const Partial& part) {
             return published(part.rank, part.root, duty.bucket);
           });
           if (all) gather(duty);
           return all;
         }) > 0;
}

void TreeExchange::gather(const Duty& duty) {
  const auto start = Clock::now();
  Gathered& sum = gathered_[static_cast<std::size_t>(duty.sum)];
  const std::int64_t first = slice_start(duty.bucket, duty.owner), size = slice_size(duty.bucket, duty.owner);
  sources_.clear();
  for (const Partial& part : sum.parts) {
    sources_.push_back(region_of(part.rank).partial(part.root, duty.bucket) + first);
  }
  const float* slice = sources_[0];
  if (sum.parts.size() > 1 || sum.parts[0].rank != rank()) {
    float* memory = reinterpret_cast<float*>(sum.memory.data()) + duty.at;
    sum.combiner.run(memory, sources_, size);
    slice = memory;
  }
  seconds_reducing_ += seconds_since(start);
  send(std::as_bytes(std::span(slice, static_cast<std::size_t>(size))), duty.owner, partial_tag(duty.bucket, duty.sum));
}

void TreeExchange::send(std::span<const std::byte> slice, int to, int tag) {
  sends_.push_back(communicator_.send(slice, to, tag));
  network_bytes_ += slice.size();
}

bool TreeExchange::here(const Operand& operand, int bucket) const {
  if (local(operand.rank)) return published(operand.rank, operand.root, bucket);
  return operand.transfers[static_cast<std::size_t>(bucket)]->done();
}

bool TreeExchange::reduce_buckets() {
  if (!sums_open_) return false;
  return std::erase_if(to_reduce_, [&](int bucket) {
           std::size_t& seen = seen_[static_cast<std::size_t>(bucket)];
           while (seen < operands_.size() && here(operands_[seen], bucket)) ++seen;
           if (seen < operands_.size()) return false;
           reduce(bucket);
           return true;
         }) > 0;
}

void TreeExchange::reduce(int bucket) {
  const auto start = Clock::now();
  const TraceScope span(trace_, "reduce", step_, kReduceLane, bucket);
  const std::int64_t first = slice_start(bucket, rank()), size = slice_size(bucket, rank());
  const std::uint64_t entry = recorder_->enqueue("reduce", -1, static_cast<std::uint64_t>(size) * sizeof(float));
  recorder_->start(entry);
  sources_.clear();
  for (const Operand& operand : operands_) {
    sources_.push_back(local(operand.rank) ? region_of(operand.rank).partial(operand.root, bucket) + first
                                           : reinterpret_cast<const float*>(operand.received.data()) +
                                                 own_slice_start_[static_cast<std::size_t>(bucket)]);
  }
  float* sum = regions_[0].sums(bucket) + first;
  combiner_.run(sum, sources_, size);
  recorder_->finish(entry);
  seconds_reducing_ += seconds_since(start);
  regions_[0].slice_ready(rank(), bucket).store(epoch_, std::memory_order_release);
  ring_peers();
  shared_bytes_ += static_cast<std::uint64_t>(size) * sizeof(float) * (regions_.size() - 1);
  for (int host = 0; host < hosts_.count(); ++host) {
    if (host != own_host()) send(bytes(sum, size), hosts_.leader(host, rank()), reduced_tag(bucket));
  }
}

bool TreeExchange::take_received_slices() {
  return std::erase_if(to_receive_, [&](const Slice& slice) {
           if (!slice.transfer->done()) return false;
           regions_[0].slice_ready(slice.owner, slice.bucket).store(epoch_, std::memory_order_release);
           ring_peers();
           return true;
         }) > 0;
}

bool TreeExchange::look_for_slices() {
  const bool seen =
      std::erase_if(to_see_, [&](const Slice& slice) {
        return regions_[0].slice_ready(slice.owner, slice.bucket).load(std::memory_order_acquire) == epoch_;
      }) > 0;
  if (seen && trace_ != nullptr) trace_whole_buckets();
  return seen;
}

// A bucket is under way from this rank's last partial sum of it until every slice of it is here.
void TreeExchange::trace_whole_buckets() {
  const double now = steady_seconds();
  std::vector<bool> whole(layout_.bucket_elements.size(), true);
  for (const Slice& slice : to_see_) whole[static_cast<std::size_t>(slice.bucket)] = false;
  const std::lock_guard lock(published_mutex_);
  for (std::size_t b = 0; b < whole.size(); ++b) {
    if (!whole[b] || published_at_[b] < 0) continue;
    trace_->add({.name = "bucket",
                 .lane = kBucketLane,
                 .step = step_,
                 .item = static_cast<int>(b),
                 .start = published_at_[b],
                 .end = now});
    published_at_[b] = -1;
  }
}

}  // namespace lockstep::comm
