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

AlignedBytes floats_of(std::int64_t count) {
  return AlignedBytes(count * sizeof(float));
}

}  // namespace

CpuAllReduce::CpuAllReduce(Communicator& communicator, GradientBuckets buckets, ReducerOptions options)
    : RankReducer(communicator, std::move(buckets), options), plans_(plan_buckets(buckets_, hosts_, rank())) {
  LOCKSTEP_CHECK(bucket_count() < kMaxBuckets, "too many buckets; make them larger");
  lay_out();
  progress_thread_ = std::thread([this] { run_progress_thread(); });
}

void CpuAllReduce::lay_out() {
  std::int64_t scattered = 0;
  for (int b = 0; b < bucket_count(); ++b) {
    const BucketPlan& of = plan(b);
    shape_.push_back({.partial = streams(b) ? 0 : elements(b),
                      .sum = of.scattered ? 0 : elements(b),
                      .slices = streams(b) ? 0 : static_cast<int>(of.slices.size())});
    starts_.push_back(scattered);
    if (of.scattered) scattered += whole_lines(elements(b));
    own_at_.push_back(own_floats_);
    own_floats_ += whole_lines(of.own_size());
    lay_out_handled(b);
    std::int64_t given = 0;
    for (const PlannedSlice& slice : of.slices) given += slice.leader == rank() ? 0 : slice.size;
    given_bytes_.push_back(given * sizeof(float));
  }
  scattered_ = floats_of(scattered);
  const bool any_streamed =
      options_.streamed && std::any_of(plans_.begin(), plans_.end(), [](const BucketPlan& of) { return of.scattered; });
  if (!any_streamed) return;
  std::vector<StreamedSums::Handled> handled;
  for (const auto& [bucket, number] : streamed_slices_)
    handled.push_back({bucket, plan(bucket).at(number).first, plan(bucket).at(number).size});
  map_doorbells();
  stream_ = std::make_unique<StreamedSums>(communicator_, buckets_, hosts_, options_, doorbells_, std::move(handled));
}

// The slices that this rank adds for its host: those that it leads, and of streamed buckets its own.
void CpuAllReduce::lay_out_handled(int bucket) {
  const BucketPlan& of = plan(bucket);
  std::vector<int> handled = of.led;
  if (streams(bucket) && of.own >= 0) handled.push_back(of.own);
  std::vector<std::int64_t>& places = places_.emplace_back(of.slices.size(), -1);
  for (const int number : handled) {
    places[number] = host_sum_floats_;
    if (hosts_.count() > 1) host_sum_floats_ += whole_lines(of.at(number).size);
    if (streams(bucket)) streamed_slices_.push_back({bucket, number});
  }
  if (of.scattered) return;
  for (const int number : of.led) led_.push_back({bucket, number});
}

CpuAllReduce::~CpuAllReduce() {
  {
    const std::lock_guard lock(progress_mutex_);
    running_ = false;
    stop_ = true;
  }
  progress_changed_.notify_all();
  if (!doorbells_.empty()) doorbell().ring();
  progress_thread_.join();
}

void CpuAllReduce::make_plan(const MicroBatchAssignment& assignment) {
  const auto set = [](Sums& sums, SumPlan plan) {
    sums.plan = std::move(plan);
    sums.whole = Combiner(sums.plan.additions, sums.plan.partials.size() + sums.plan.others.size());
    sums.of_host.clear();
    for (const HostSum& sum : sums.plan.host_sums) sums.of_host.emplace_back(sum.additions, sum.parts.size());
  };
  const std::vector<int>& own = assignment.micro_batches_of_rank[rank()];
  measure(assignment);
  set(merged_, plan_sums(tree_, assignment, hosts_, rank()));
  use(tree_plan(tree_, merged_.plan.roots), assignment);
  const std::size_t buckets = buckets_.buckets.size();
  to_publish_ = 0;
  for (int b = 0; b < bucket_count(); ++b) to_publish_ += streams(b) ? own.size() : merged_.plan.roots.size();
  received_.clear();
  for (const OtherSum& other : merged_.plan.others) {
    received_.push_back(
        {other.leader, other.number, floats_of(own_floats_), std::vector<std::unique_ptr<Transfer>>(buckets)});
  }
  host_sums_.clear();
  gather_tasks_.clear();
  for (int s = 0; s < static_cast<int>(merged_.plan.host_sums.size()); ++s) {
    host_sums_.push_back(floats_of(host_sum_floats_));
    for (int b = 0; b < bucket_count(); ++b) {
      if (!plan(b).led.empty()) gather_tasks_.push_back({s, b});
    }
  }
  if (!stream_) return;
  set(streamed_, plan_of_host_sums(tree_, merged_.plan, rank()));
  std::vector<TreeNode> subtrees;
  for (const HostSum& sum : merged_.plan.host_sums) subtrees.push_back(sum.node);
  stream_->use(assignment, subtrees);
}

void CpuAllReduce::begin_step(std::uint64_t step, const MicroBatchAssignment& assignment) {
  step_ = step;
  ++epoch_;
  if (assignment != assignment_) make_plan(assignment);
  if (needs_room(merged_.plan.max_roots)) mapped_steps_ = 0;
  ++mapped_steps_;
  map_regions(merged_.plan.max_roots, shape_);
  enter_step(step, assignment);
  sums_.begin([this](int root, int bucket) { return own_region().partial(root, bucket); });
  published_ = 0;
  {
    const std::lock_guard lock(progress_mutex_);
    sums_open_ = false;
    to_gather_.resize(gather_tasks_.size());
    std::iota(to_gather_.begin(), to_gather_.end(), 0);
    to_gather_of_.assign(buckets_.buckets.size(), 0);
    for (const GatherTask& task : gather_tasks_) ++to_gather_of_[task.bucket];
    to_reduce_.clear();
    reduced_.assign(buckets_.buckets.size(), 0);
    seen_.assign(buckets_.buckets.size(), 0);
    receives_.clear();
    to_receive_ = led_.size();
    to_see_.clear();
    for (int b = 0; b < bucket_count(); ++b) {
      if (plan(b).own >= 0) to_reduce_.push_back(b);
      if (streams(b) || !plan(b).slices.empty()) to_see_.push_back(b);
    }
    post_received();
    if (stream_) {
      stream_->begin_step(epoch_, [this](int subtree, int handled) {
        const auto [bucket, number] = streamed_slices_[handled];
        return streamed_sum(subtree, bucket, number);
      });
    }
    if (trace_ != nullptr) published_at_.assign(buckets_.buckets.size(), steady_seconds());
    last_progress_ = Clock::now();
    running_ = true;
  }
  own_region().begun().store(epoch_, std::memory_order_release);
  ring_peers();
  progress_changed_.notify_all();
}

// Posts receives of this rank's slices of other hosts' sums.
void CpuAllReduce::post_received() {
  for (Received& other : received_) {
    for (const int bucket : to_reduce_) {
      const std::size_t b = bucket;
      other.transfers[b] =
          communicator_.receive(bytes(floats(other.memory, own_at_[b]), plan(bucket).own_size()), other.leader,
                                partial_tag(bucket, other.number), [&mine = doorbell()] { mine.ring(); });
    }
  }
}

void CpuAllReduce::run_progress_thread() {
  std::unique_lock lock(progress_mutex_);
  while (true) {
    progress_changed_.wait(lock, [&] { return running_ || stop_; });
    if (stop_) return;
    const std::uint32_t rings = doorbell().rings();
    try {
      if (advance()) continue;
    } catch (...) {
      error_ = std::current_exception();
      running_ = false;
      continue;
    }
    lock.unlock();
    doorbell().wait(rings, Clock::now() + std::chrono::hours(1));
    lock.lock();
  }
}

bool CpuAllReduce::advance_once() {
  const std::lock_guard lock(progress_mutex_);
  return advance();
}

void CpuAllReduce::wait_for_slices() {
  const auto start = Clock::now();  // what came last may have come while this rank computed, or was stopped
  RanTime ran(start);
  while (true) {
    const std::uint32_t rings = doorbell().rings();
    const auto now = Clock::now();
    (void)ran.look(now);
    auto end = now + kCheckPeers;
    {
      const std::lock_guard lock(progress_mutex_);
      const bool moved = advance();
      if (to_see_.empty() && to_receive_ == 0) return;
      if (moved) continue;
      const auto latest = std::max(start, last_progress_);
      if (now >= latest + kCheckPeers) {
        const auto [peer, what] = missing();
        recorder_->waits_for(communicator_.topology().number(peer), what);
        const auto since = latest_progress(latest, options_.watch);
        const auto expires = since + ran.stopped() + options_.timeout;
        if (now >= expires) give_up(peer, what, since);
        end = std::min(end, expires);
      }
    }
    communicator_.check_peers();
    doorbell().wait(rings, end, kSpin);
    seconds_waited_ += seconds_since(now);
  }
}

// Called by a worker that has waited since `start` for room in its ring, whenever its doorbell rings.
void CpuAllReduce::check_room(int micro_batch, Clock::time_point start, RanTime& ran) {
  const auto now = Clock::now();
  (void)ran.look(now);
  const std::lock_guard lock(progress_mutex_);
  if (error_) std::rethrow_exception(error_);
  const auto since = latest_progress(std::max(start, last_progress_), options_.watch);
  if (now < since + ran.stopped() + options_.timeout) return;
  auto [peer, what] = missing();
  if (peer < 0 || peer == rank()) {
    peer = stream_->slowest_reader(micro_batch);
    what = "it has not read a gradient in shared memory";
  }
  give_up(peer, what, since);
}

void CpuAllReduce::give_up(int peer, const std::string& what, Clock::time_point since) const {
  throw_deadline(communicator_.topology(), rank(), peer, operation("reduce"), seconds_since(since), what);
}

std::pair<int, std::string> CpuAllReduce::missing() const {
  for (int r = 0; r < ranks() && !sums_open_; ++r) {
    if (local(r) && region_of(r).begun().load() < epoch_) return {r, "it has not begun this step"};
  }
  if (stream_) {
    const auto [peer, buckets] = stream_->missing();
    if (peer >= 0) return {peer, fmt::format("{} buckets of its micro-batches have not come", buckets)};
  }
  const auto partial_of = [](int bucket) { return fmt::format("its partial sum of bucket {} has not come", bucket); };
  for (const int number : to_gather_) {
    const GatherTask& task = gather_tasks_[number];
    for (const Partial& part : host_sum(task).parts) {
      if (!here(part, task.bucket)) return {part.rank, partial_of(task.bucket)};
    }
  }
  if (!to_reduce_.empty()) {
    const int bucket = to_reduce_.front();
    const auto& partials = sum_plan(bucket).partials;
    const std::size_t seen = seen_[bucket];
    if (seen < partials.size()) return {partials[seen].rank, partial_of(bucket)};
    if (seen < partials.size() + received_.size())
      return {received_[seen - partials.size()].leader, partial_of(bucket)};
  }
  return missing_slice();
}

// Of the slices that the host's ranks wait for.
std::pair<int, std::string> CpuAllReduce::missing_slice() const {
  for (const int bucket : to_see_) {
    for (int number = 0; number < shape_[bucket].slices; ++number) {
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

CpuAllReduce::Bytes CpuAllReduce::bytes(const Load& load) {
  const auto& [gathered, scattered] = load.slices;
  std::int64_t merged = 0, finished = 0;  // floats of buckets with partial sums, and of those that are gathered
  for (const GradientBuckets::Bucket& bucket : load.buckets.buckets) {
    if (!bucket.scattered || !load.streamed) merged += whole_lines(bucket.elements);
    if (!bucket.scattered) finished += whole_lines(bucket.elements);
  }
  std::int64_t own_merged = gathered.own_floats, led_merged = gathered.led_floats, streamed = 0;
  if (load.streamed) {
    streamed = scattered.own_floats + scattered.led_floats;
  } else {
    own_merged += scattered.own_floats;
    led_merged += scattered.led_floats;
  }
  const std::int64_t roots = load.sums.roots.size();
  const std::int64_t host_sums = load.hosts > 1 ? load.sums.host_sums : 0;
  const std::int64_t own = roots * merged + host_sums * streamed + load.sums.others * load.slices.own_floats() +
                           load.sums.made_sums * led_merged + scattered.own_floats;
  constexpr std::int64_t kFloat = sizeof(float);
  return {.own = own * kFloat,
          .waiting = (load.merging * merged + load.streaming * streamed) * kFloat,
          .read = load.sums.read * (own_merged + led_merged) * kFloat,
          .of_host = (finished + load.host_rings) * kFloat};
}

ReducerStatistics CpuAllReduce::statistics() const {
  const std::lock_guard lock(progress_mutex_);
  ReducerStatistics result;
  result.shared_memory_bytes = shared_bytes_;
  result.network_bytes = network_bytes_;
  result.partials_sent = partials_sent_;
  result.seconds_waited = seconds_waited_ + scalar_seconds_;
  result.seconds_reducing = seconds_reducing_;
  result.peak_elements = sums_.peak_pool_elements();
  for (const RegionShape::Bucket& bucket : shape_) result.peak_elements += merged_.plan.max_roots * bucket.partial;
  if (!stream_) return result;
  result.seconds_reducing += stream_->seconds_adding();
  result.peak_elements +=
      stream_->peak_elements() + options_.workers * GradientRings::elements(buckets_, options_.open_elements);
  return result;
}

std::unique_ptr<GradientReducer> make_cpu_all_reduce(Communicator& communicator, GradientBuckets buckets,
                                                     ReducerOptions options) {
  return std::make_unique<CpuAllReduce>(communicator, std::move(buckets), options);
}

}  // namespace lockstep::comm
