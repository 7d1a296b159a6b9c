#include "comm/reduce/streamed_reduce_scatter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <numeric>

#include "comm/reduce/rank_reducer.hpp"
#include "comm/transport/recorded.hpp"
#include "core/round_up.hpp"
#include "core/spans.hpp"
#include "device/cpu/add.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookForPeers{100};
constexpr std::size_t kCacheLine = 64;
constexpr std::int64_t kAheadElements = std::int64_t{1} << 21;  // by which a worker may be ahead of who reads

GradientBuckets buckets_of_sizes(const std::vector<std::int64_t>& sizes) {
  GradientBuckets all;
  for (const std::int64_t size : sizes) all.buckets.emplace_back().elements = size;
  return all;
}

}  // namespace

StreamedReduceScatter::StreamedReduceScatter(Communicator& communicator, GradientBuckets buckets,
                                             const ReducerOptions& options, int first_tag_bucket)
    : communicator_(communicator),
      recorder_(recorder_of(communicator) ? recorder_of(communicator) : std::make_shared<FlightRecorder>()),
      buckets_(std::move(buckets)),
      options_(options),
      first_tag_bucket_(first_tag_bucket),
      hosts_(communicator.topology()),
      tree_(buckets_.shards),
      local_ranks_(hosts_.ranks(hosts_.host_of(communicator.rank()))),
      local_rank_(hosts_.local_rank(communicator.rank())),
      buffer_memory_(host_buffer_memory()),
      filled_(static_cast<std::size_t>(options.workers)),
      cursors_(local_ranks_.size()) {
  LOCKSTEP_CHECK(bucket_count() > 0 && bucket_count() + first_tag_bucket < kMaxBuckets,
                 "too many buckets; make them larger");
  lay_out();
  map();
  progress_thread_ = std::thread([this] { run_progress_thread(); });
}

void StreamedReduceScatter::lay_out() {
  const int rank = communicator_.rank();
  std::vector<std::int64_t> sizes;
  std::int64_t elements = 0;
  for (int b = 0; b < bucket_count(); ++b) {
    starts_.push_back(elements);
    elements += whole_lines(buckets_.at(b).elements);
    auto& of_bucket = handled_of_.emplace_back();
    for (const Slice& slice : slices_of(buckets_, b, hosts_.rank_count())) {
      if (hosts_.leader(hosts_.host_of(rank), slice.owner) != rank) continue;
      of_bucket.push_back(static_cast<int>(handled_.size()));
      handled_.push_back({b, slice.first, slice.size, slice.owner});
      sizes.push_back(slice.size);
    }
  }
  sums_ = AlignedBytes(static_cast<std::size_t>(elements) * sizeof(float));
  adding_ = std::make_unique<AccumulationBuffers>(buckets_of_sizes(sizes), *buffer_memory_);
  lane_elements_ = lane_elements(buckets_, options_.open_elements);
}

// What is open at a time has room wherever the ring begins; beyond that, a worker may go on while others read.
std::int64_t StreamedReduceScatter::lane_elements(const GradientBuckets& buckets, std::int64_t open) {
  std::int64_t elements = 0, largest = 0;
  for (const GradientBuckets::Bucket& bucket : buckets.buckets) {
    const std::int64_t in_bucket = whole_lines(bucket.elements);
    elements += in_bucket;
    largest = std::max(largest, in_bucket);
  }
  return std::max(whole_lines(open), largest) + largest + std::min(elements, kAheadElements);
}

// doorbell | lanes | what each reader has read | the lanes' memory
void StreamedReduceScatter::map() {
  const std::size_t lanes = filled_.size();
  const std::size_t bytes = kCacheLine + lanes * (sizeof(Lane) + local_ranks_.size() * sizeof(Count)) + kCacheLine +
                            lanes * static_cast<std::size_t>(lane_elements_) * sizeof(float);
  memory_ = map_host_memory(communicator_, bytes,
                            [&](std::byte* block) {
                              new (block) Doorbell();
                              for (std::size_t l = 0; l < lanes; ++l)
                                new (block + kCacheLine + l * sizeof(Lane)) Lane();
                              std::byte* const counts = block + kCacheLine + lanes * sizeof(Lane);
                              for (std::size_t i = 0; i < lanes * local_ranks_.size(); ++i)
                                new (counts + i * sizeof(Count)) Count();
                            },
                            {"shared memory", 0, options_.timeout});
  for (auto& of_rank : cursors_) of_rank.assign(lanes, 0);
}

StreamedReduceScatter::~StreamedReduceScatter() {
  {
    const std::lock_guard lock(mutex_);
    running_ = false;
    stop_ = true;
  }
  changed_.notify_all();
  doorbell(local_rank_).ring();
  progress_thread_.join();
}

Doorbell& StreamedReduceScatter::doorbell(int local_rank) const {
  return *reinterpret_cast<Doorbell*>(memory_->block(local_rank));
}

StreamedReduceScatter::Lane& StreamedReduceScatter::lane(int local_rank, int number) const {
  return *reinterpret_cast<Lane*>(memory_->block(local_rank) + kCacheLine +
                                  static_cast<std::size_t>(number) * sizeof(Lane));
}

std::atomic<std::uint64_t>& StreamedReduceScatter::read(int local_rank, int number, int reader) const {
  std::byte* const counts = memory_->block(local_rank) + kCacheLine + filled_.size() * sizeof(Lane);
  const std::size_t index = static_cast<std::size_t>(number) * local_ranks_.size() + static_cast<std::size_t>(reader);
  return reinterpret_cast<Count*>(counts + index * sizeof(Count))->value;
}

float* StreamedReduceScatter::memory(int local_rank, int number) const {
  std::byte* const lanes =
      memory_->block(local_rank) +
      round_up(kCacheLine + filled_.size() * (sizeof(Lane) + local_ranks_.size() * sizeof(Count)), kCacheLine);
  return reinterpret_cast<float*>(lanes) + number * lane_elements_;
}

void StreamedReduceScatter::begin_step(std::uint64_t step, const ShardAssignment& assignment) {
  const std::lock_guard lock(mutex_);
  step_ = step;
  ++epoch_;
  if (assignment != assignment_) {
    assignment_ = assignment;
    const SumPlan plan = plan_sums(tree_, assignment, hosts_, communicator_.rank());
    host_nodes_.clear();
    for (const HostSum& sum : plan.host_sums) host_nodes_.push_back(sum.node);
    others_ = plan.others;
    adding_->use(tree_plan(tree_, host_nodes_));
    std::vector<TreeNode> operands = host_nodes_;
    for (const OtherSum& other : others_) operands.push_back(other.node);
    combiner_ = Combiner(combine_order(tree_, tree_.root(), operands), operands.size());
    host_sums_ = std::vector<AlignedBytes>(handled_.size());
    received_ = std::vector<AlignedBytes>(handled_.size());
    for (std::size_t h = 0; h < handled_.size() && hosts_.count() > 1; ++h) {
      const auto bytes = static_cast<std::size_t>(whole_lines(handled_[h].size)) * sizeof(float);
      host_sums_[h] = AlignedBytes(host_nodes_.size() * bytes);
      if (handled_[h].owner == communicator_.rank()) received_[h] = AlignedBytes(others_.size() * bytes);
    }
  }
  read_in_step_.assign(local_ranks_.size(), 0);
  unread_ = 0;
  for (const int rank : local_ranks_) unread_ += to_come(rank);
  incomplete_ = handled_.size();
  for (Handled& slice : handled_) {
    slice.roots_left = static_cast<int>(host_nodes_.size());
    slice.complete = host_nodes_.empty() && slice.owner != communicator_.rank();
    if (slice.complete) --incomplete_;
  }
  adding_->begin([this](int root, int h) {
    const Handled& slice = handled_[static_cast<std::size_t>(h)];
    AlignedBytes& sums = host_sums_[static_cast<std::size_t>(h)];
    if (sums.size() > 0) return reinterpret_cast<float*>(sums.data()) + root * whole_lines(slice.size);
    return reinterpret_cast<float*>(sums_.data()) + starts_[static_cast<std::size_t>(slice.bucket)] + slice.first;
  });
  post_receives();
  last_progress_ = Clock::now();
  running_ = true;
  changed_.notify_all();
}

void StreamedReduceScatter::post_receives() {
  Doorbell& mine = doorbell(local_rank_);
  for (std::size_t h = 0; h < handled_.size(); ++h) {
    Handled& slice = handled_[h];
    slice.transfers.clear();
    if (slice.owner != communicator_.rank()) continue;
    for (std::size_t i = 0; i < others_.size(); ++i) {
      float* const to = reinterpret_cast<float*>(received_[h].data()) +
                        static_cast<std::int64_t>(i) * whole_lines(slice.size);
      slice.transfers.push_back(communicator_.receive(
          std::as_writable_bytes(std::span(to, static_cast<std::size_t>(slice.size))), others_[i].leader,
          partial_tag(first_tag_bucket_ + slice.bucket, others_[i].number), [&mine] { mine.ring(); }));
    }
  }
}

// A lane has one shard at a time, from its first bucket to its last.
int StreamedReduceScatter::lane_of(int shard) {
  const std::lock_guard lock(lanes_mutex_);
  auto found = std::find_if(filled_.begin(), filled_.end(), [&](const Filled& lane) { return lane.shard == shard; });
  if (found == filled_.end()) {
    found = std::find_if(filled_.begin(), filled_.end(), [](const Filled& lane) { return lane.shard < 0; });
    LOCKSTEP_CHECK(found != filled_.end(), "more shards at a time than ReducerOptions says workers");
    found->shard = shard;
  }
  return static_cast<int>(found - filled_.begin());
}

void StreamedReduceScatter::free_read(int number) {
  Filled& mine = filled_[static_cast<std::size_t>(number)];
  std::uint64_t read_by_all = mine.published;
  for (int reader = 0; reader < static_cast<int>(local_ranks_.size()); ++reader) {
    read_by_all = std::min(read_by_all, read(local_rank_, number, reader).load(std::memory_order_acquire));
  }
  for (; mine.freed < read_by_all; ++mine.freed) mine.places.pop_front();
}

std::optional<std::int64_t> StreamedReduceScatter::place(Filled& lane, std::int64_t elements) const {
  if (lane.places.empty()) return 0;
  if (lane.opened - lane.freed >= kEntries) return std::nullopt;
  const std::int64_t first = lane.places.front().offset, last = lane.places.back().offset;
  const std::int64_t head = last + lane.places.back().elements;
  if (last < first) return first - head >= elements ? std::optional(head) : std::nullopt;
  if (lane_elements_ - head >= elements) return head;
  return first >= elements ? std::optional<std::int64_t>(0) : std::nullopt;
}

GradientBuffer StreamedReduceScatter::buffer(int shard, int bucket) {
  const int number = lane_of(shard);
  Filled& mine = filled_[static_cast<std::size_t>(number)];
  LOCKSTEP_CHECK(static_cast<int>(mine.opened % static_cast<std::uint64_t>(bucket_count())) == bucket,
                 "a shard's buckets come in order");
  const std::int64_t elements = whole_lines(std::max<std::int64_t>(buckets_.at(bucket).elements, 1));
  const auto start = Clock::now();
  while (true) {
    const std::uint32_t rings = doorbell(local_rank_).rings();
    free_read(number);
    if (const auto offset = place(mine, elements)) {
      mine.places.push_back({*offset, elements});
      ++mine.opened;
      return {memory(local_rank_, number) + *offset, false};
    }
    const auto now = Clock::now();
    if (now >= start + options_.timeout) {
      int slowest = 0;
      for (int reader = 1; reader < static_cast<int>(local_ranks_.size()); ++reader) {
        if (read(local_rank_, number, reader) < read(local_rank_, number, slowest)) slowest = reader;
      }
      throw_deadline(communicator_.topology(), communicator_.rank(), local_ranks_[static_cast<std::size_t>(slowest)],
                     operation(), seconds_since(start), "it has not read a gradient that stands in shared memory");
    }
    {
      const std::lock_guard lock(mutex_);
      if (error_) std::rethrow_exception(error_);
    }
    communicator_.check_peers();
    doorbell(local_rank_).wait(rings, std::min(start + options_.timeout, now + kLookForPeers));
  }
}

void StreamedReduceScatter::ready(int shard, int bucket) {
  const int number = lane_of(shard);
  Filled& mine = filled_[static_cast<std::size_t>(number)];
  LOCKSTEP_CHECK(static_cast<int>(mine.published % static_cast<std::uint64_t>(bucket_count())) == bucket &&
                     mine.published < mine.opened,
                 "ready() comes after buffer(), bucket by bucket");
  Lane& shown = lane(local_rank_, number);
  shown.entries[mine.published % kEntries] = {epoch_, shard, mine.places[mine.published - mine.freed].offset};
  shown.published.store(++mine.published, std::memory_order_release);
  for (int r = 0; r < static_cast<int>(local_ranks_.size()); ++r) doorbell(r).ring();
  recorder_->note("partial", -1, static_cast<std::uint64_t>(buckets_.at(bucket).elements) * sizeof(float));
  if (bucket + 1 < bucket_count()) return;
  const std::lock_guard lock(lanes_mutex_);
  mine.shard = -1;
}

void StreamedReduceScatter::run_progress_thread() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return running_ || stop_; });
    if (stop_) return;
    const std::uint32_t rings = doorbell(local_rank_).rings();
    try {
      const bool moved = advance();
      if (moved) last_progress_ = Clock::now();
      if (is_done()) {
        running_ = false;
        changed_.notify_all();
        continue;
      }
      if (moved) continue;
    } catch (...) {
      error_ = std::current_exception();
      running_ = false;
      changed_.notify_all();
      continue;
    }
    lock.unlock();
    doorbell(local_rank_).wait(rings, Clock::now() + std::chrono::hours(1));
    lock.lock();
  }
}

// A peer may have begun the next step; what it has published of that waits.
bool StreamedReduceScatter::advance() {
  bool moved = false;
  for (int r = 0; r < static_cast<int>(local_ranks_.size()); ++r) {
    for (int l = 0; l < static_cast<int>(filled_.size()); ++l) {
      std::uint64_t& cursor = cursors_[static_cast<std::size_t>(r)][static_cast<std::size_t>(l)];
      const Lane& from = lane(r, l);
      while (cursor < from.published.load(std::memory_order_acquire)) {
        const Entry& entry = from.entries[cursor % kEntries];
        if (entry.epoch != epoch_) break;
        take(entry, static_cast<int>(cursor % static_cast<std::uint64_t>(bucket_count())), memory(r, l) + entry.offset);
        read(r, l, local_rank_).store(++cursor, std::memory_order_release);
        doorbell(r).ring();
        ++read_in_step_[static_cast<std::size_t>(r)];
        --unread_;
        moved = true;
      }
    }
  }
  return combine() || moved;
}

void StreamedReduceScatter::take(const Entry& entry, int bucket, const float* gradient) {
  const auto start = Clock::now();
  const TraceScope span(trace_, "add", step_, kReduceTrack, bucket);
  for (const int h : handled_of_[static_cast<std::size_t>(bucket)]) {
    Handled& slice = handled_[static_cast<std::size_t>(h)];
    const GradientBuffer to = adding_->buffer(entry.shard, h);
    if (to.add) {
      device::add(to.memory, gradient + slice.first, to.memory, slice.size);
    } else {
      std::copy_n(gradient + slice.first, slice.size, to.memory);
    }
    if (const auto root = adding_->ready(entry.shard, h)) root_done(slice, *root);
  }
  statistics_.seconds_reducing += seconds_since(start);
}

// The host has its sum of one of its subtrees.
void StreamedReduceScatter::root_done(Handled& slice, int root) {
  --slice.roots_left;
  if (slice.owner != communicator_.rank()) {
    const auto h = static_cast<std::size_t>(&slice - handled_.data());
    const float* const sum =
        reinterpret_cast<const float*>(host_sums_[h].data()) + root * whole_lines(slice.size);
    const auto bytes = std::as_bytes(std::span(sum, static_cast<std::size_t>(slice.size)));
    sends_.push_back(communicator_.send(bytes, slice.owner, partial_tag(first_tag_bucket_ + slice.bucket, root)));
    statistics_.network_bytes += bytes.size();
  } else if (hosts_.count() > 1) {
    return;  // combine() adds the other hosts' sums
  }
  if (slice.roots_left > 0) return;
  slice.complete = true;
  --incomplete_;
}

bool StreamedReduceScatter::combine() {
  if (hosts_.count() == 1) return false;
  bool moved = false;
  for (std::size_t h = 0; h < handled_.size(); ++h) {
    Handled& slice = handled_[h];
    if (slice.complete || slice.roots_left > 0 || slice.owner != communicator_.rank()) continue;
    if (!std::all_of(slice.transfers.begin(), slice.transfers.end(), [](const auto& t) { return t->done(); })) continue;
    std::vector<const float*> sources;
    const auto add_sources = [&](const AlignedBytes& memory, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) {
        sources.push_back(reinterpret_cast<const float*>(memory.data()) +
                          static_cast<std::int64_t>(i) * whole_lines(slice.size));
      }
    };
    add_sources(host_sums_[h], host_nodes_.size());
    add_sources(received_[h], others_.size());
    float* const sum =
        reinterpret_cast<float*>(sums_.data()) + starts_[static_cast<std::size_t>(slice.bucket)] + slice.first;
    combiner_.run(sum, sources, slice.size);
    slice.complete = true;
    --incomplete_;
    moved = true;
  }
  return moved;
}

void StreamedReduceScatter::finish() {
  const ActivityScope activity(recorder_.get(), "reduce", step_);
  const auto start = Clock::now();
  std::unique_lock lock(mutex_);
  while (!is_done()) {
    if (error_) std::rethrow_exception(error_);
    if (!changed_.wait_for(lock, kLookForPeers, [&] { return is_done() || error_; })) {
      const auto [peer, what] = missing();
      recorder_->waits_for(communicator_.topology().number(peer), what);
      if (Clock::now() >= last_progress_ + options_.timeout) {
        throw_deadline(communicator_.topology(), communicator_.rank(), peer, operation(), seconds_since(last_progress_),
                       what);
      }
      lock.unlock();
      communicator_.check_peers();
      lock.lock();
    }
  }
  if (error_) std::rethrow_exception(error_);
  for (const auto& transfer : sends_) transfer->wait(operation());
  sends_.clear();
  statistics_.seconds_waited += seconds_since(start);
}

// Of a rank, in this step: buckets of its shards.
std::uint64_t StreamedReduceScatter::to_come(int rank) const {
  return assignment_.shards_of_rank[static_cast<std::size_t>(rank)].size() * static_cast<std::uint64_t>(bucket_count());
}

std::pair<int, std::string> StreamedReduceScatter::missing() const {
  for (const Handled& slice : handled_) {
    if (slice.complete) continue;
    for (std::size_t i = 0; i < slice.transfers.size() && slice.roots_left == 0; ++i) {
      if (slice.transfers[i]->done()) continue;
      return {others_[i].leader,
              fmt::format("its host's sum of bucket {} has not come", first_tag_bucket_ + slice.bucket)};
    }
  }
  // The rank that is furthest from the end of its shards.
  int peer = -1;
  std::uint64_t most = 0;
  for (std::size_t r = 0; r < local_ranks_.size(); ++r) {
    const std::uint64_t left = to_come(local_ranks_[r]) - read_in_step_[r];
    if (left <= most) continue;
    most = left;
    peer = local_ranks_[r];
  }
  return {peer, fmt::format("{} buckets of its shards have not come", most)};
}

std::span<const float> StreamedReduceScatter::reduced(int bucket) const {
  return {reinterpret_cast<const float*>(sums_.data()) + starts_[static_cast<std::size_t>(bucket)],
          static_cast<std::size_t>(buckets_.at(bucket).elements)};
}

ReducerStatistics StreamedReduceScatter::statistics() const {
  const std::lock_guard lock(mutex_);
  ReducerStatistics result = statistics_;
  std::uint64_t shards = 0;
  for (const Filled& lane : filled_) shards += lane.published / static_cast<std::uint64_t>(bucket_count());
  std::int64_t handled = 0;
  for (const Handled& slice : handled_) handled += slice.size;
  result.shared_memory_bytes = shards * static_cast<std::uint64_t>(buckets_.elements() - handled) * sizeof(float);
  result.partials_sent = shards * static_cast<std::uint64_t>(bucket_count());
  result.peak_elements = adding_->peak_pool_elements() + static_cast<std::int64_t>(filled_.size()) * lane_elements_;
  return result;
}

}  // namespace lockstep::comm
