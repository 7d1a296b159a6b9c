// The exact all-reduce, except for the work on one bucket: the plan of a step, the threads, waiting, errors.
#include "comm/reduce/all_reduce_cpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "comm/transport/topology.hpp"
#include "core/round_up.hpp"
#include "core/spans.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr microseconds kSpin{20};
constexpr milliseconds kCheckPeers{100};

}  // namespace

CpuAllReduce::CpuAllReduce(Communicator& communicator, GradientBuckets buckets, ReducerOptions options)
    : RankReducer(communicator, std::move(buckets), options) {
  LOCKSTEP_CHECK(bucket_count() < kMaxBuckets, "too many buckets; make them larger");
  lay_out_slices();
  progress_thread_ = std::thread([this] { run_progress_thread(); });
}

void CpuAllReduce::lay_out_slices() {
  plan_ = {rank(), {}, plan_buckets(buckets_, hosts_, rank())};
  for (int b = 0; b < bucket_count(); ++b) {
    const BucketPlan& of = plan(b);
    slice_counts_.push_back(static_cast<int>(of.slices.size()));
    own_slice_at_.push_back(own_slices_);
    own_slices_ += whole_lines(of.own_size());
    if (!of.scattered) {
      for (const int number : of.led) led_.push_back({b, number});
    }
    std::int64_t given = 0;
    for (const PlannedSlice& slice : of.slices) given += slice.leader == rank() ? 0 : slice.size;
    given_bytes_.push_back(static_cast<std::uint64_t>(given) * sizeof(float));
  }
}

CpuAllReduce::~CpuAllReduce() {
  {
    const std::lock_guard lock(progress_mutex_);
    running_ = false;
    stop_ = true;
  }
  progress_changed_.notify_all();
  if (!regions_.empty()) own_region().doorbell().ring();
  progress_thread_.join();
}

void CpuAllReduce::make_plan(const MicroBatchAssignment& assignment) {
  measure(assignment);
  plan_.sums = plan_sums(tree_, assignment, hosts_, rank());
  sums_.use(tree_plan(tree_, plan_.sums.roots));
  make_operands();
  make_gathered();
}

void CpuAllReduce::make_operands() {
  operands_.clear();
  for (const Partial& partial : plan_.sums.partials) operands_.push_back({partial.rank, partial.root, {}, {}});
  for (const OtherSum& sum : plan_.sums.others) {
    operands_.push_back({sum.leader, sum.number, AlignedBytes(static_cast<std::size_t>(own_slices_) * sizeof(float)),
                         std::vector<std::unique_ptr<Transfer>>(plan_.buckets.size())});
  }
  combiner_ = Combiner(plan_.sums.additions, operands_.size());
}

void CpuAllReduce::make_gathered() {
  gathered_.clear();
  gather_tasks_.clear();
  for (const HostSum& sum : plan_.sums.host_sums) {
    const int number = static_cast<int>(gathered_.size());
    std::int64_t elements = 0;
    for (int b = 0; b < bucket_count(); ++b) {
      if (plan(b).led.empty()) continue;
      gather_tasks_.push_back({number, b, elements});
      for (const int slice : plan(b).led) elements += whole_lines(plan(b).at(slice).size);
    }
    gathered_.push_back(
        {Combiner(sum.additions, sum.parts.size()), AlignedBytes(static_cast<std::size_t>(elements) * sizeof(float))});
  }
}

void CpuAllReduce::begin_step(std::uint64_t step, const MicroBatchAssignment& assignment) {
  step_ = step;
  ++epoch_;
  if (assignment != assignment_) make_plan(assignment);
  if (needs_room(plan_.sums.max_roots)) {
    park_progress_thread();
    mapped_steps_ = 0;
  }
  ++mapped_steps_;
  map_regions(plan_.sums.max_roots, slice_counts_);
  enter_step(step, assignment);
  sums_.begin([this](int root, int bucket) { return own_region().partial(root, bucket); });
  published_ = 0;
  {
    const std::lock_guard lock(progress_mutex_);
    sums_open_ = false;
    to_gather_.resize(gather_tasks_.size());
    std::iota(to_gather_.begin(), to_gather_.end(), 0);
    to_gather_of_.assign(buckets_.buckets.size(), plan_.sums.host_sums.size());
    to_reduce_.clear();
    seen_.assign(buckets_.buckets.size(), 0);
    receives_.clear();
    to_receive_ = led_.size();
    to_see_.clear();
    for (int b = 0; b < bucket_count(); ++b) {
      if (plan(b).own >= 0) to_reduce_.push_back(b);
      if (!plan(b).slices.empty()) to_see_.push_back(b);
    }
    post_operands();
    if (trace_ != nullptr) published_at_.assign(buckets_.buckets.size(), steady_seconds());
    running_ = true;
  }
  own_region().begun().store(epoch_, std::memory_order_release);
  ring_peers();
  progress_changed_.notify_all();
}

// Posts receives of this rank's slices of other hosts' sums.
void CpuAllReduce::post_operands() {
  const Region& mine = own_region();
  for (Operand& operand : operands_) {
    if (local(operand.rank)) continue;
    auto* memory = reinterpret_cast<float*>(operand.received.data());
    for (const int bucket : to_reduce_) {
      const auto b = static_cast<std::size_t>(bucket);
      operand.transfers[b] =
          communicator_.receive(bytes(memory + own_slice_at_[b], plan(bucket).own_size()), operand.rank,
                                partial_tag(bucket, operand.root), [&mine] { mine.doorbell().ring(); });
    }
  }
}

void CpuAllReduce::run_progress_thread() {
  std::unique_lock lock(progress_mutex_);
  while (true) {
    parked_ = true;
    progress_changed_.notify_all();
    progress_changed_.wait(lock, [&] { return running_ || stop_; });
    parked_ = false;
    if (stop_) return;
    Doorbell& doorbell = own_region().doorbell();
    const std::uint32_t rings = doorbell.rings();
    try {
      if (advance()) continue;
    } catch (...) {
      error_ = std::current_exception();
      running_ = false;
      continue;
    }
    lock.unlock();
    doorbell.wait(rings, Clock::now() + std::chrono::hours(1));
    lock.lock();
  }
}

bool CpuAllReduce::advance_once() {
  const std::lock_guard lock(progress_mutex_);
  return advance();
}

// Called when its region is about to be replaced.
void CpuAllReduce::park_progress_thread() {
  if (!regions_.empty()) own_region().doorbell().ring();
  std::unique_lock lock(progress_mutex_);
  progress_changed_.wait(lock, [&] { return parked_; });
}

void CpuAllReduce::wait_for_slices() {
  Doorbell& doorbell = own_region().doorbell();
  auto last_progress = Clock::now();
  while (true) {
    const std::uint32_t rings = doorbell.rings();
    {
      const std::lock_guard lock(progress_mutex_);
      const bool moved = advance();
      if (to_see_.empty() && to_receive_ == 0) return;
      if (moved) {
        last_progress = Clock::now();
        continue;
      }
    }
    last_progress = latest_progress(last_progress, options_.watch);
    const auto now = Clock::now(), end = last_progress + options_.timeout;
    if (now >= std::min(end, last_progress + kCheckPeers)) {
      const auto [peer, what] = missing();
      recorder_->waits_for(communicator_.topology().number(peer), what);
      if (now >= end) {
        throw_deadline(communicator_.topology(), rank(), peer, operation("reduce"), seconds_since(last_progress), what);
      }
    }
    communicator_.check_peers();
    doorbell.wait(rings, std::min(end, now + kCheckPeers), kSpin);
    seconds_waited_ += seconds_since(now);
  }
}

std::pair<int, std::string> CpuAllReduce::missing() const {
  const std::lock_guard lock(progress_mutex_);
  for (int r = 0; r < ranks() && !sums_open_; ++r) {
    if (local(r) && region_of(r).begun().load() < epoch_) return {r, "it has not begun this step"};
  }
  for (const int number : to_gather_) {
    const GatherTask& task = gather_tasks_[static_cast<std::size_t>(number)];
    for (const Partial& part : plan_.sums.host_sums[static_cast<std::size_t>(task.sum)].parts) {
      if (published(part.rank, part.root, task.bucket)) continue;
      return {part.rank, fmt::format("its partial sum of bucket {} has not come", task.bucket)};
    }
  }
  if (!to_reduce_.empty()) {
    const int bucket = to_reduce_.front();
    const std::size_t seen = seen_[static_cast<std::size_t>(bucket)];
    if (seen < operands_.size()) {
      return {operands_[seen].rank, fmt::format("its partial sum of bucket {} has not come", bucket)};
    }
  }
  for (const int bucket : to_see_) {
    for (int number = 0; number < slice_counts_[static_cast<std::size_t>(bucket)]; ++number) {
      if (regions_[0].slice_ready(number, bucket).load(std::memory_order_acquire) == epoch_) continue;
      const PlannedSlice& slice = plan(bucket).at(number);
      if (plan(bucket).scattered) {  // such a slice is not received; its owner or leader has yet to read the host's
                                     // partial sums
        return {local(slice.owner) ? slice.owner : slice.leader, fmt::format("it has not added bucket {}", bucket)};
      }
      return {slice.owner, fmt::format("its reduced slice of bucket {} has not come", bucket)};
    }
  }
  return {-1, ""};
}

ReducerStatistics CpuAllReduce::statistics() const {
  const std::lock_guard lock(progress_mutex_);
  ReducerStatistics result;
  result.shared_memory_bytes = shared_bytes_;
  result.network_bytes = network_bytes_;
  result.partials_sent = partials_sent_;
  result.seconds_waited = seconds_waited_ + scalar_seconds_;
  result.seconds_reducing = seconds_reducing_;
  result.peak_elements = sums_.peak_pool_elements() + plan_.sums.max_roots * buckets_.elements();
  return result;
}

std::unique_ptr<GradientReducer> make_cpu_all_reduce(Communicator& communicator, GradientBuckets buckets,
                                                     ReducerOptions options) {
  return std::make_unique<CpuAllReduce>(communicator, std::move(buckets), options);
}

}  // namespace lockstep::comm
