#include "comm/reduce/streamed_reduce_scatter.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "comm/reduce/rank_reducer.hpp"
#include "comm/transport/recorded.hpp"
#include "core/round_up.hpp"
#include "core/spans.hpp"
#include "device/cpu/add.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

GradientBuckets buckets_of_sizes(const std::vector<std::int64_t>& sizes) {
  GradientBuckets all;
  for (const std::int64_t size : sizes) all.buckets.emplace_back().elements = size;
  return all;
}

/// The micro-batches of some ranks, in the order in which their gradients are expected: as the schedule has it, or, if
/// all go through their lists at even pace, as they come then; the tree's order decides between simultaneous ones.
std::vector<int> expected_order(const MicroBatchAssignment& assignment, const std::vector<int>& ranks) {
  std::vector<double> turn(assignment.order.size());
  for (std::size_t i = 0; i < turn.size(); ++i) {
    turn[static_cast<std::size_t>(assignment.order[i])] = static_cast<double>(i);
  }
  std::vector<std::pair<double, int>> timed;
  for (const int rank : ranks) {
    const auto& list = assignment.micro_batches_of_rank[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < list.size(); ++i) {
      const double even_pace = static_cast<double>(i + 1) / static_cast<double>(list.size());
      timed.emplace_back(turn.empty() ? even_pace : turn[static_cast<std::size_t>(list[i])], list[i]);
    }
  }
  std::sort(timed.begin(), timed.end());
  std::vector<int> order;
  for (const auto& [when, micro_batch] : timed) order.push_back(micro_batch);
  return order;
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
      tree_(buckets_.micro_batches),
      local_ranks_(hosts_.ranks(hosts_.host_of(communicator.rank()))),
      rings_(communicator, buckets_, options.workers, options.open_elements, options.timeout),
      buffer_memory_(host_buffer_memory()) {
  LOCKSTEP_CHECK(bucket_count() > 0 && bucket_count() + first_tag_bucket < kMaxBuckets,
                 "too many buckets; make them larger");
  lay_out();
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
}

// The most wait if the first micro-batch of each window comes last.
StreamedReduceScatter::HostLoad StreamedReduceScatter::host_load(const MicroBatchAssignment& assignment,
                                                                 const Hosts& hosts, int rank,
                                                                 std::span<const int> workers) {
  const std::vector<int>& local_ranks = hosts.ranks(hosts.host_of(rank));
  HostLoad load;
  for (const int local : local_ranks) load.workers += workers[static_cast<std::size_t>(local)];
  const std::vector<int> order = expected_order(assignment, local_ranks);
  const auto window = static_cast<std::size_t>(std::max(1, load.workers));
  std::vector<std::vector<int>> worst;
  for (std::size_t first = 0; first < order.size(); first += window) {
    for (std::size_t i = std::min(order.size(), first + window); i-- > first;) worst.push_back({order[i]});
  }
  GradientBuckets line{.buckets = {}, .micro_batches = 0};
  for (const auto& list : assignment.micro_batches_of_rank) line.micro_batches += static_cast<int>(list.size());
  line.buckets.emplace_back().elements = whole_lines(1);
  const Tree tree(line.micro_batches);
  load.waiting = AccumulationBuffers::pool_elements(line, tree_plan(tree, tree.maximal_subtrees(order)), worst) /
                 line.buckets[0].elements;
  return load;
}

std::int64_t StreamedReduceScatter::sum_bytes(const HostLoad& host, const SumLoad& sums, const SliceLoad& slices,
                                              int hosts) {
  const std::int64_t handled = slices.own_floats + slices.led_floats;
  std::int64_t floats = host.waiting * handled;
  if (hosts > 1) floats += sums.host_sums * handled + sums.others * slices.own_floats;
  return floats * static_cast<std::int64_t>(sizeof(float));
}

StreamedReduceScatter::~StreamedReduceScatter() {
  {
    const std::lock_guard lock(mutex_);
    running_ = false;
    stop_ = true;
  }
  changed_.notify_all();
  rings_.doorbell().ring();
  progress_thread_.join();
}

void StreamedReduceScatter::begin_step(std::uint64_t step, const MicroBatchAssignment& assignment) {
  const std::lock_guard lock(mutex_);
  step_ = step;
  ++epoch_;
  if (assignment != assignment_) use(assignment);
  rings_.begin_step();
  for (auto& of_bucket : read_) std::fill(of_bucket.begin(), of_bucket.end(), char{0});
  std::fill(first_unread_.begin(), first_unread_.end(), std::size_t{0});
  read_in_step_.assign(local_ranks_.size(), 0);
  unread_ = 0;
  for (const int rank : local_ranks_) unread_ += to_come(rank);
  incomplete_ = handled_.size();
  for (Handled& slice : handled_) {
    slice.roots_left = static_cast<int>(host_nodes_.size());
    slice.complete = host_nodes_.empty() && !owns(slice);
    if (slice.complete) --incomplete_;
  }
  adding_->begin([this](int root, int h) {
    const Handled& slice = handled_[static_cast<std::size_t>(h)];
    return slice.host_sums.size() > 0 ? part_of(slice.host_sums, slice, static_cast<std::size_t>(root)).data()
                                      : sum_of(slice);
  });
  post_receives();
  last_progress_ = Clock::now();
  running_ = true;
  changed_.notify_all();
}

// With a single host, the sum of its subtrees is the whole sum.
void StreamedReduceScatter::use(const MicroBatchAssignment& assignment) {
  assignment_ = assignment;
  order_micro_batches();
  const SumPlan plan = plan_sums(tree_, assignment, hosts_, communicator_.rank());
  host_nodes_.clear();
  for (const HostSum& sum : plan.host_sums) host_nodes_.push_back(sum.node);
  others_ = plan.others;
  adding_->use(tree_plan(tree_, host_nodes_));
  std::vector<TreeNode> operands = host_nodes_;
  for (const OtherSum& other : others_) operands.push_back(other.node);
  combiner_ = Combiner(combine_order(tree_, tree_.root(), operands), operands.size());
  if (hosts_.count() == 1) return;
  for (Handled& slice : handled_) {
    const auto bytes = static_cast<std::size_t>(whole_lines(slice.size)) * sizeof(float);
    slice.host_sums = AlignedBytes(host_nodes_.size() * bytes);
    if (owns(slice)) slice.received = AlignedBytes(others_.size() * bytes);
  }
}

void StreamedReduceScatter::order_micro_batches() {
  const std::vector<int> order = expected_order(assignment_, local_ranks_);
  order_.assign(static_cast<std::size_t>(buckets_.micro_batches), -1);
  for (std::size_t place = 0; place < order.size(); ++place) {
    order_[static_cast<std::size_t>(order[place])] = static_cast<int>(place);
  }
  window_ = std::max(1, rings_.host_workers());
  read_.assign(buckets_.buckets.size(), std::vector<char>(order.size() + 1));  // the last one is never read
  first_unread_.assign(buckets_.buckets.size(), 0);
}

float* StreamedReduceScatter::sum_of(const Handled& slice) const {
  return reinterpret_cast<float*>(sums_.data()) + starts_[static_cast<std::size_t>(slice.bucket)] + slice.first;
}

std::span<float> StreamedReduceScatter::part_of(const AlignedBytes& memory, const Handled& slice, std::size_t number) {
  return {reinterpret_cast<float*>(memory.data()) + static_cast<std::int64_t>(number) * whole_lines(slice.size),
          static_cast<std::size_t>(slice.size)};
}

void StreamedReduceScatter::post_receives() {
  Doorbell& mine = rings_.doorbell();
  for (Handled& slice : handled_) {
    slice.transfers.clear();
    if (!owns(slice)) continue;
    for (std::size_t i = 0; i < others_.size(); ++i) {
      slice.transfers.push_back(communicator_.receive(
          std::as_writable_bytes(part_of(slice.received, slice, i)), others_[i].leader,
          partial_tag(first_tag_bucket_ + slice.bucket, others_[i].number), [&mine] { mine.ring(); }));
    }
  }
}

GradientBuffer StreamedReduceScatter::buffer(int micro_batch, int bucket) {
  const auto start = Clock::now();
  const int place = order_[static_cast<std::size_t>(micro_batch)];
  return {rings_.open(micro_batch, place, bucket, [&] { check_wait(micro_batch, start); }), false};
}

void StreamedReduceScatter::check_wait(int micro_batch, Clock::time_point start) {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  const auto since = latest_progress(std::max(start, last_progress_), options_.watch);
  if (Clock::now() < since + options_.timeout) return;
  auto [peer, what] = missing();
  if (peer < 0 || peer == communicator_.rank()) {
    peer = rings_.slowest_reader(micro_batch);
    what = "it has not read a gradient in shared memory";
  }
  give_up(peer, what, since);
}

void StreamedReduceScatter::give_up(int peer, const std::string& what, Clock::time_point since) const {
  throw_deadline(communicator_.topology(), communicator_.rank(), peer, operation(), seconds_since(since), what);
}

void StreamedReduceScatter::ready(int micro_batch, int bucket) {
  rings_.publish(micro_batch, bucket, epoch_);
  recorder_->note("partial", -1, static_cast<std::uint64_t>(buckets_.at(bucket).elements) * sizeof(float));
}

void StreamedReduceScatter::run_progress_thread() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return running_ || stop_; });
    if (stop_) return;
    const std::uint32_t rings = rings_.doorbell().rings();
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
    rings_.doorbell().wait(rings, Clock::now() + std::chrono::hours(1));
    lock.lock();
  }
}

bool StreamedReduceScatter::advance() {
  const bool read = rings_.read_new(epoch_, [this](const auto& published) { return take(published); });
  return combine() || read;
}

bool StreamedReduceScatter::take(const GradientRings::Published& published) {
  const auto bucket = static_cast<std::size_t>(published.bucket);
  const auto place = static_cast<std::size_t>(order_[static_cast<std::size_t>(published.micro_batch)]);
  std::size_t& first = first_unread_[bucket];
  if (!handled_of_[bucket].empty() && place >= first + static_cast<std::size_t>(window_)) return false;
  add(published);
  read_[bucket][place] = 1;
  while (read_[bucket][first] != 0) ++first;
  return true;
}

void StreamedReduceScatter::add(const GradientRings::Published& published) {
  const auto start = Clock::now();
  const TraceScope span(trace_, "add", step_, kReduceTrack, published.bucket);
  for (const int h : handled_of_[static_cast<std::size_t>(published.bucket)]) {
    Handled& slice = handled_[static_cast<std::size_t>(h)];
    const float* const gradient = published.gradient + slice.first;
    const GradientBuffer to = adding_->buffer(published.micro_batch, h);
    if (to.add) {
      device::add(to.memory, gradient, to.memory, slice.size);
    } else {
      std::copy_n(gradient, slice.size, to.memory);
    }
    if (const auto root = adding_->ready(published.micro_batch, h)) root_done(slice, *root);
  }
  ++read_in_step_[static_cast<std::size_t>(published.local_rank)];
  --unread_;
  statistics_.seconds_reducing += seconds_since(start);
}

// The host's sum of one of its subtrees is complete.
void StreamedReduceScatter::root_done(Handled& slice, int root) {
  --slice.roots_left;
  if (!owns(slice)) {
    const auto sum = std::as_bytes(part_of(slice.host_sums, slice, static_cast<std::size_t>(root)));
    sends_.push_back(communicator_.send(sum, slice.owner, partial_tag(first_tag_bucket_ + slice.bucket, root)));
    statistics_.network_bytes += sum.size();
  } else if (hosts_.count() > 1) {
    return;  // combine() adds the other hosts' sums later
  }
  if (slice.roots_left == 0) complete(slice);
}

void StreamedReduceScatter::complete(Handled& slice) {
  slice.complete = true;
  --incomplete_;
}

bool StreamedReduceScatter::combine() {
  if (hosts_.count() == 1) return false;
  bool moved = false;
  for (Handled& slice : handled_) {
    if (slice.complete || slice.roots_left > 0 || !owns(slice)) continue;
    if (!std::all_of(slice.transfers.begin(), slice.transfers.end(), [](const auto& t) { return t->done(); })) continue;
    std::vector<const float*> sources;
    for (std::size_t i = 0; i < host_nodes_.size(); ++i) {
      sources.push_back(part_of(slice.host_sums, slice, i).data());
    }
    for (std::size_t i = 0; i < others_.size(); ++i) sources.push_back(part_of(slice.received, slice, i).data());
    combiner_.run(sum_of(slice), sources, slice.size);
    complete(slice);
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
    if (!changed_.wait_for(lock, kCheckInterval, [&] { return is_done() || error_; })) {
      const auto [peer, what] = missing();
      recorder_->waits_for(communicator_.topology().number(peer), what);
      last_progress_ = latest_progress(last_progress_, options_.watch);
      if (Clock::now() >= last_progress_ + options_.timeout) give_up(peer, what, last_progress_);
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

// Buckets that the rank's micro-batches have in this step.
std::uint64_t StreamedReduceScatter::to_come(int rank) const {
  return assignment_.micro_batches_of_rank[static_cast<std::size_t>(rank)].size() *
         static_cast<std::uint64_t>(bucket_count());
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
  // The local rank of the first micro-batch that is not complete: all others may be waiting for it.
  int peer = -1, earliest = 0;
  std::uint64_t left = 0;
  for (std::size_t r = 0; r < local_ranks_.size(); ++r) {
    for (const int micro_batch : assignment_.micro_batches_of_rank[static_cast<std::size_t>(local_ranks_[r])]) {
      const int place = order_[static_cast<std::size_t>(micro_batch)];
      if (read_.back()[static_cast<std::size_t>(place)] != 0 || (peer >= 0 && place > earliest)) continue;
      earliest = place;
      peer = local_ranks_[r];
      left = to_come(peer) - read_in_step_[r];
    }
  }
  return {peer, fmt::format("{} buckets of its micro-batches have not come", left)};
}

std::span<const float> StreamedReduceScatter::reduced(int bucket) const {
  return {reinterpret_cast<const float*>(sums_.data()) + starts_[static_cast<std::size_t>(bucket)],
          static_cast<std::size_t>(buckets_.at(bucket).elements)};
}

ReducerStatistics StreamedReduceScatter::statistics() const {
  const std::lock_guard lock(mutex_);
  ReducerStatistics result = statistics_;
  const std::uint64_t micro_batches = rings_.micro_batches_published();
  std::int64_t handled = 0;
  for (const Handled& slice : handled_) handled += slice.size;
  result.shared_memory_bytes =
      micro_batches * static_cast<std::uint64_t>(buckets_.elements() - handled) * sizeof(float);
  result.partials_sent = micro_batches * static_cast<std::uint64_t>(bucket_count());
  result.peak_elements =
      adding_->peak_pool_elements() + options_.workers * GradientRings::elements(buckets_, options_.open_elements);
  return result;
}

}  // namespace lockstep::comm
