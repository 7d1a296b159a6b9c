// The exact exchange between ranks.
//
// A rank publishes each of its partial sums (the roots of its maximal subtrees), bucket by bucket: peers of its
// host read it in its region, owners on other hosts are sent their slice of it. The owner of a slice waits for
// the partial sums of all ranks, adds them in tree order and writes the result into its host's `sums`, which
// all ranks of the host read; to every other host it sends the result once, to one rank of that host, which
// receives it straight into the `sums` there.
//
// Why no buffer is overwritten while somebody reads it:
//  - A partial sum of step t is read by owners until they have reduced it. finish() of step t returns only when
//    all slices of all buckets are reduced and all own messages have left, so from then on nobody reads this
//    rank's partial sums, and leaf() of step t + 1 may write them.
//  - `sums` of step t are read until each rank of the host begins step t + 1, which it says by `begun`. Slices
//    of step t + 1 are written, and messages with slices are received, only after all ranks of the host have
//    begun it. (Ranks without shards publish nothing, so waiting for partial sums alone would not be enough.)
//  - Flags carry the step's number, and a rank is never more than one step ahead of a peer: to finish a step it
//    needs every peer's slices of that step. A rank with no slices at all could run ahead; but it waits for the
//    peers' slices too.
//
// Threads: workers publish; a progress thread adds slices while others still compute; in finish() the main
// thread takes its place, so that no hand-over costs time at the end. Both sleep on the region's doorbell.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "comm/combiner.hpp"
#include "comm/exchange_tags.hpp"
#include "comm/rank_exchange.hpp"
#include "comm/topology.hpp"
#include "core/spans.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr microseconds kSpin{20};
constexpr milliseconds kCheckPeers{100};

class TreeExchange final : public RankExchange {
 public:
  TreeExchange(Communicator& communicator, ExchangeLayout layout, ExchangeOptions options);
  ~TreeExchange() override;
  void begin_step(std::uint64_t step, const Assignment& assignment) override;
  void ready(int shard, int bucket) override;
  void finish() override;
  [[nodiscard]] std::span<const float> reduced(int bucket) const override;
  [[nodiscard]] ExchangeStatistics statistics() const override;

 private:
  /// A partial sum of some rank, and what this rank knows of it as an owner.
  struct Partial {
    int rank = 0;
    int root = 0;
    AlignedBytes received;                             ///< of another host: my slice of each bucket
    std::vector<std::unique_ptr<Transfer>> transfers;  ///< of another host, by bucket
  };
  /// Somebody's reduced slice of a bucket.
  struct Slice {
    int bucket = 0;
    int owner = 0;
    std::unique_ptr<Transfer> transfer;  ///< where this rank receives it for its host
  };

  // Geometry
  [[nodiscard]] std::int64_t slice_start(int bucket, int owner) const {
    return bounds_[static_cast<std::size_t>(bucket)][static_cast<std::size_t>(owner)];
  }
  [[nodiscard]] std::int64_t slice_size(int bucket, int owner) const {
    return slice_start(bucket, owner + 1) - slice_start(bucket, owner);
  }
  [[nodiscard]] bool local(int other) const { return communicator_.topology().same_host(rank(), other); }
  [[nodiscard]] const Region& region_of(int other) const {
    return regions_[static_cast<std::size_t>(communicator_.topology().local_rank(other))];
  }
  /// The rank of a host that receives an owner's slices.
  [[nodiscard]] int receiver(int host, int owner) const {
    const auto& ranks_there = ranks_of_host_[static_cast<std::size_t>(host)];
    return ranks_there[static_cast<std::size_t>(owner) % ranks_there.size()];
  }
  [[nodiscard]] int own_host() const { return communicator_.topology().host_of[static_cast<std::size_t>(rank())]; }
  [[nodiscard]] std::span<std::byte> bytes(float* first, std::int64_t count) const {
    return std::as_writable_bytes(std::span(first, static_cast<std::size_t>(count)));
  }
  void ring_peers() const {
    for (const Region& region : regions_) region.doorbell().ring();
  }

  // A step
  void make_plan(const Assignment& assignment);
  void post_partials();
  void publish(int root, int bucket);
  void run_progress_thread();
  void park_progress_thread();
  void wait_for_slices();
  [[noreturn]] void throw_missing(double seconds);

  // Progress; progress_mutex_ is held
  bool advance();
  bool open_sums();
  bool reduce_buckets();
  [[nodiscard]] bool here(const Partial& partial, int bucket) const;
  void reduce(int bucket);
  bool take_received_slices();
  bool look_for_slices();

  std::vector<std::vector<std::int64_t>> bounds_;  ///< by bucket: slices
  std::vector<std::int64_t> own_slice_start_;      ///< by bucket: in Partial::received, in elements
  std::int64_t own_slices_ = 0;                    ///< elements of all own slices, each from a cache line on
  std::vector<std::vector<int>> ranks_of_host_;

  MergePlan merge_plan_;
  Combiner combiner_;
  std::vector<Partial> partials_;
  int own_roots_ = 0, most_roots_ = 0;

  std::uint64_t epoch_ = 0;  ///< steps begun; what flags are set to
  std::atomic<int> published_{0};
  std::mutex sends_mutex_;
  std::vector<std::unique_ptr<Transfer>> sends_;

  mutable std::mutex progress_mutex_;
  std::condition_variable progress_changed_;
  bool running_ = false, stop_ = false;  ///< the progress thread's; under progress_mutex_
  bool parked_ = false;                  ///< it does not touch the regions
  std::exception_ptr error_;             ///< of the progress thread
  bool sums_open_ = false;
  std::vector<int> to_reduce_;     ///< buckets
  std::vector<std::size_t> seen_;  ///< by bucket: how many of partials_ are known to be here
  std::vector<Slice> to_receive_;
  std::vector<Slice> to_see_;
  std::vector<const float*> sources_;

  std::atomic<std::uint64_t> shared_bytes_{0}, network_bytes_{0}, partials_sent_{0};
  double seconds_waited_ = 0, seconds_reducing_ = 0;
  std::thread progress_thread_;
};

TreeExchange::TreeExchange(Communicator& communicator, ExchangeLayout layout, ExchangeOptions options)
    : RankExchange(communicator, std::move(layout), options) {
  LOCKSTEP_CHECK(buckets() < kMostBuckets, "too many buckets; make them larger");
  for (int b = 0; b < buckets(); ++b) {
    bounds_.push_back(slice_bounds(elements(b), layout_.cuts[static_cast<std::size_t>(b)], ranks()));
    own_slice_start_.push_back(own_slices_);
    own_slices_ += (slice_size(b, rank()) + 15) / 16 * 16;
  }
  const Topology& topology = communicator_.topology();
  ranks_of_host_.resize(topology.host_names.size());
  for (int r = 0; r < ranks(); ++r) {
    ranks_of_host_[static_cast<std::size_t>(topology.host_of[static_cast<std::size_t>(r)])].push_back(r);
  }
  progress_thread_ = std::thread([this] { run_progress_thread(); });
}

TreeExchange::~TreeExchange() {
  {
    const std::lock_guard lock(progress_mutex_);
    running_ = false;
    stop_ = true;
  }
  progress_changed_.notify_all();
  if (!regions_.empty()) own_region().doorbell().ring();
  progress_thread_.join();
}

void TreeExchange::make_plan(const Assignment& assignment) {
  partials_.clear();
  most_roots_ = 1;
  std::vector<TreeNode> nodes;
  for (int r = 0; r < ranks(); ++r) {
    const auto subtrees = tree_.maximal_subtrees(assignment.shards_of_rank.at(static_cast<std::size_t>(r)));
    const int roots = static_cast<int>(subtrees.size());
    most_roots_ = std::max(most_roots_, roots);
    if (r == rank()) {
      own_roots_ = roots;
      merge_plan_ = tree_plan(tree_, subtrees);
    }
    for (int root = 0; root < roots; ++root) {
      nodes.push_back(subtrees[static_cast<std::size_t>(root)]);
      Partial& partial = partials_.emplace_back();
      partial.rank = r;
      partial.root = root;
      if (local(r)) continue;
      partial.received = AlignedBytes(static_cast<std::size_t>(own_slices_) * sizeof(float));
      partial.transfers.resize(layout_.bucket_elements.size());
    }
  }
  combiner_ = Combiner(tree_, nodes);
}

void TreeExchange::begin_step(std::uint64_t step, const Assignment& assignment) {
  step_ = step;
  ++epoch_;
  if (assignment != assignment_) make_plan(assignment);
  if (most_roots_ > room_) park_progress_thread();
  map_regions(most_roots_, true);
  begin_sums(step, assignment, merge_plan_);
  published_ = 0;
  {
    const std::lock_guard lock(progress_mutex_);
    sums_open_ = false;
    to_reduce_.clear();
    seen_.assign(layout_.bucket_elements.size(), 0);
    to_receive_.clear();
    to_see_.clear();
    for (int b = 0; b < buckets(); ++b) {
      if (slice_size(b, rank()) > 0) to_reduce_.push_back(b);
      for (int owner = 0; owner < ranks(); ++owner) {
        if (slice_size(b, owner) > 0) to_see_.push_back({b, owner, nullptr});
      }
    }
    post_partials();
    running_ = true;
  }
  own_region().begun().store(epoch_, std::memory_order_release);
  ring_peers();
  progress_changed_.notify_all();
}

// My slices of the partial sums of other hosts.
void TreeExchange::post_partials() {
  const Region& mine = own_region();
  for (Partial& partial : partials_) {
    if (local(partial.rank)) continue;
    auto* memory = reinterpret_cast<float*>(partial.received.data());
    for (const int bucket : to_reduce_) {
      const auto b = static_cast<std::size_t>(bucket);
      partial.transfers[b] =
          communicator_.receive(bytes(memory + own_slice_start_[b], slice_size(bucket, rank())), partial.rank,
                                partial_tag(bucket, partial.root), [&mine] { mine.doorbell().ring(); });
    }
  }
}

void TreeExchange::ready(int shard, int bucket) {
  if (const auto root = sums_.ready(shard, bucket)) publish(*root, bucket);
}

void TreeExchange::publish(int root, int bucket) {
  const Region& mine = own_region();
  mine.partial_ready(root, bucket).store(epoch_, std::memory_order_release);
  for (int i = 0; i < ranks(); ++i) {  // from myself on, so that not all send to the same rank first
    const int owner = (rank() + i) % ranks();
    const std::int64_t size = slice_size(bucket, owner);
    if (size == 0) continue;
    const std::uint64_t count = static_cast<std::uint64_t>(size) * sizeof(float);
    if (local(owner)) {
      region_of(owner).doorbell().ring();
      if (owner != rank()) shared_bytes_ += count;
      continue;
    }
    auto transfer = communicator_.send(bytes(mine.partial(root, bucket) + slice_start(bucket, owner), size), owner,
                                       partial_tag(bucket, root));
    network_bytes_ += count;
    const std::lock_guard lock(sends_mutex_);
    sends_.push_back(std::move(transfer));
  }
  ++partials_sent_;
  ++published_;
}

bool TreeExchange::advance() {
  bool moved = open_sums();
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
    if (local(slice.owner) || receiver(own_host(), slice.owner) != rank()) continue;
    float* place = regions_[0].sums(slice.bucket) + slice_start(slice.bucket, slice.owner);
    to_receive_.push_back({slice.bucket, slice.owner,
                           communicator_.receive(bytes(place, slice_size(slice.bucket, slice.owner)), slice.owner,
                                                 reduced_tag(slice.bucket), [&mine] { mine.doorbell().ring(); })});
  }
  return true;
}

bool TreeExchange::here(const Partial& partial, int bucket) const {
  if (local(partial.rank)) {
    return region_of(partial.rank).partial_ready(partial.root, bucket).load(std::memory_order_acquire) == epoch_;
  }
  return partial.transfers[static_cast<std::size_t>(bucket)]->done();
}

bool TreeExchange::reduce_buckets() {
  if (!sums_open_) return false;
  return std::erase_if(to_reduce_, [&](int bucket) {
           std::size_t& seen = seen_[static_cast<std::size_t>(bucket)];
           while (seen < partials_.size() && here(partials_[seen], bucket)) ++seen;
           if (seen < partials_.size()) return false;
           reduce(bucket);
           return true;
         }) > 0;
}

void TreeExchange::reduce(int bucket) {
  const auto start = Clock::now();
  const std::int64_t first = slice_start(bucket, rank()), size = slice_size(bucket, rank());
  sources_.clear();
  for (const Partial& partial : partials_) {
    sources_.push_back(local(partial.rank) ? region_of(partial.rank).partial(partial.root, bucket) + first
                                           : reinterpret_cast<const float*>(partial.received.data()) +
                                                 own_slice_start_[static_cast<std::size_t>(bucket)]);
  }
  float* sum = regions_[0].sums(bucket) + first;
  combiner_.run(sum, sources_, size);
  seconds_reducing_ += seconds_since(start);
  regions_[0].slice_ready(rank(), bucket).store(epoch_, std::memory_order_release);
  ring_peers();
  const std::uint64_t count = static_cast<std::uint64_t>(size) * sizeof(float);
  shared_bytes_ += count * (regions_.size() - 1);
  for (int host = 0; host < static_cast<int>(ranks_of_host_.size()); ++host) {
    if (host == own_host()) continue;
    auto transfer = communicator_.send(bytes(sum, size), receiver(host, rank()), reduced_tag(bucket));
    network_bytes_ += count;
    const std::lock_guard lock(sends_mutex_);
    sends_.push_back(std::move(transfer));
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
  return std::erase_if(to_see_, [&](const Slice& slice) {
           return regions_[0].slice_ready(slice.owner, slice.bucket).load(std::memory_order_acquire) == epoch_;
         }) > 0;
}

void TreeExchange::run_progress_thread() {
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

// Its region is about to be replaced.
void TreeExchange::park_progress_thread() {
  if (!regions_.empty()) own_region().doorbell().ring();
  std::unique_lock lock(progress_mutex_);
  progress_changed_.wait(lock, [&] { return parked_; });
}

void TreeExchange::finish() {
  LOCKSTEP_CHECK(published_ == own_roots_ * buckets(), "finish() comes after ready() of every shard and bucket");
  {
    const std::lock_guard lock(progress_mutex_);
    running_ = false;  // from here on this thread makes the progress
    if (error_) std::rethrow_exception(error_);
  }
  wait_for_slices();
  const auto start = Clock::now();
  for (const auto& transfer : sends_) transfer->wait(operation("exchange"));
  sends_.clear();
  seconds_waited_ += seconds_since(start);
}

void TreeExchange::wait_for_slices() {
  Doorbell& doorbell = own_region().doorbell();
  auto last_progress = Clock::now();
  while (true) {
    const std::uint32_t rings = doorbell.rings();
    {
      const std::lock_guard lock(progress_mutex_);
      const bool moved = advance();
      if (to_see_.empty() && to_receive_.empty()) return;
      if (moved) {
        last_progress = Clock::now();
        continue;
      }
    }
    const auto now = Clock::now(), end = last_progress + options_.timeout;
    if (now >= end) throw_missing(seconds_since(last_progress));
    communicator_.check_peers();
    doorbell.wait(rings, std::min(end, now + kCheckPeers), kSpin);
    seconds_waited_ += seconds_since(now);
  }
}

void TreeExchange::throw_missing(double seconds) {
  const std::lock_guard lock(progress_mutex_);
  const Operation exchange = operation("exchange");
  const auto fail = [&](int peer, const std::string& what) {
    throw_deadline(communicator_.topology(), rank(), peer, exchange, seconds, what);
  };
  for (int r = 0; r < ranks() && !sums_open_; ++r) {
    if (local(r) && region_of(r).begun().load() < epoch_) fail(r, "it has not begun this step");
  }
  if (!to_reduce_.empty()) {
    const int bucket = to_reduce_.front();
    const Partial& partial = partials_.at(seen_[static_cast<std::size_t>(bucket)]);
    fail(partial.rank, fmt::format("its partial sum of bucket {} has not come", bucket));
  }
  const Slice& slice = to_see_.front();
  fail(slice.owner, fmt::format("its reduced slice of bucket {} has not come", slice.bucket));
  check_failed("unreachable", __FILE__, __LINE__, "nothing is missing");
}

std::span<const float> TreeExchange::reduced(int bucket) const {
  return {regions_[0].sums(bucket), static_cast<std::size_t>(elements(bucket))};
}

ExchangeStatistics TreeExchange::statistics() const {
  const std::lock_guard lock(progress_mutex_);
  ExchangeStatistics result;
  result.shared_memory_bytes = shared_bytes_;
  result.network_bytes = network_bytes_;
  result.partials_sent = partials_sent_;
  result.seconds_waited = seconds_waited_ + scalar_seconds_;
  result.seconds_reducing = seconds_reducing_;
  result.peak_elements = sums_.peak_pool_elements() + most_roots_ * all_elements();
  return result;
}

}  // namespace

std::unique_ptr<Exchange> make_tree_exchange(Communicator& communicator, ExchangeLayout layout,
                                             ExchangeOptions options) {
  return std::make_unique<TreeExchange>(communicator, std::move(layout), options);
}

}  // namespace lockstep::comm
