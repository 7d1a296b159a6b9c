#include "comm/reduce/gradient_rings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "core/round_up.hpp"
#include "core/spans.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::int64_t kAheadElements = std::int64_t{1} << 21;  // how far a worker may get ahead of its readers

}  // namespace

GradientRings::GradientRings(Communicator& communicator, const GradientBuckets& buckets,
                             std::vector<Doorbell*> doorbells, int count, std::int64_t open,
                             std::chrono::milliseconds timeout)
    : communicator_(communicator),
      buckets_(buckets),
      doorbells_(std::move(doorbells)),
      timeout_(timeout),
      ring_elements_(elements(buckets, open)),
      filled_(count) {
  for (int b = 0; b < buckets.count(); ++b) {
    if (buckets.at(b).scattered) streamed_.push_back(b);
  }
  const Hosts hosts(communicator.topology());
  local_ranks_ = hosts.ranks(hosts.host_of(communicator.rank()));
  local_rank_ = hosts.local_rank(communicator.rank());
  std::vector<int> counts(communicator.size());
  communicator.all_gather(std::as_bytes(std::span(&count, 1)), std::as_writable_bytes(std::span(counts)),
                          {"shared memory", 0, timeout});
  for (const int rank : local_ranks_) {
    counts_.push_back(counts[rank]);
    cursors_.emplace_back(static_cast<std::size_t>(counts_.back()));
  }
  map();
}

// Has room for all open buckets, wherever in the ring they begin, and for a worker to get ahead of its readers.
std::int64_t GradientRings::elements(const GradientBuckets& buckets, std::int64_t open) {
  std::int64_t all = 0, largest = 0;
  for (const GradientBuckets::Bucket& bucket : buckets.buckets) {
    if (!bucket.scattered) continue;
    all += whole_lines(bucket.elements);
    largest = std::max(largest, whole_lines(bucket.elements));
  }
  return std::max(whole_lines(open), largest) + largest + std::min(all, kAheadElements);
}

// Layout: rings | what each reader has read | the rings' memory
void GradientRings::map() {
  const std::size_t rings = filled_.size();
  const std::size_t bytes = rings * (sizeof(Shared) + local_ranks_.size() * sizeof(Count)) + kCacheLine +
                            rings * ring_elements_ * sizeof(float);
  memory_ =
      map_host_memory(communicator_,
                      {.bytes = bytes,
                       .prepare =
                           [&](std::byte* block) {
                             for (std::size_t l = 0; l < rings; ++l) new (block + l * sizeof(Shared)) Shared();
                             std::byte* const counts = block + rings * sizeof(Shared);
                             for (std::size_t i = 0; i < rings * local_ranks_.size(); ++i)
                               new (counts + i * sizeof(Count)) Count();
                           },
                       .layout = fmt::format("rings of {} floats, {} readers", ring_elements_, local_ranks_.size()),
                       .all_read = true},
                      {"shared memory", 0, timeout_});
}

GradientRings::Shared& GradientRings::ring(int local_rank, int number) const {
  return *reinterpret_cast<Shared*>(memory_->block(local_rank) + number * sizeof(Shared));
}

std::atomic<std::uint64_t>& GradientRings::read_by(int reader, int local_rank, int number) const {
  std::byte* const counts = memory_->block(local_rank) + count(local_rank) * sizeof(Shared);
  const std::size_t index = number * local_ranks_.size() + reader;
  return reinterpret_cast<Count*>(counts + index * sizeof(Count))->value;
}

float* GradientRings::memory(int local_rank, int number) const {
  std::byte* const rings =
      memory_->block(local_rank) +
      round_up(count(local_rank) * (sizeof(Shared) + local_ranks_.size() * sizeof(Count)), kCacheLine);
  return reinterpret_cast<float*>(rings) + number * ring_elements_;
}

void GradientRings::begin_step() {
  const std::lock_guard lock(mutex_);
  for (Filled& ring : filled_) ring.last_place = -1;
}

// A ring is used by one micro-batch at a time, from its first bucket to its last.
int GradientRings::ring_of(int micro_batch) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(filled_.begin(), filled_.end(), [&](const Filled& ring) { return ring.micro_batch == micro_batch; });
  LOCKSTEP_CHECK(found != filled_.end(), "a micro-batch's buckets come in order");
  return found - filled_.begin();
}

// Nothing may be behind a later place in its ring, whose reader might wait for it. Of the rings where nothing is later,
// the one with the latest place is taken: each thread then finds one, since what it has published before is earlier.
void GradientRings::take_ring(int micro_batch, int place) {
  const std::lock_guard lock(mutex_);
  Filled* best = nullptr;
  for (Filled& ring : filled_) {
    if (ring.micro_batch >= 0 || ring.last_place > place) continue;
    if (best == nullptr || ring.last_place > best->last_place) best = &ring;
  }
  LOCKSTEP_CHECK(best != nullptr, "no more micro-batches at a time than there are rings, each thread's in order");
  best->micro_batch = micro_batch;
  best->last_place = place;
}

void GradientRings::free_read(int number) {
  Filled& mine = filled_[number];
  std::uint64_t read_by_all = mine.published;
  for (int reader = 0; reader < static_cast<int>(local_ranks_.size()); ++reader) {
    read_by_all = std::min(read_by_all, read_by(reader, local_rank_, number).load(std::memory_order_acquire));
  }
  for (; mine.freed < read_by_all; ++mine.freed) mine.segments.pop_front();
}

std::optional<std::int64_t> GradientRings::room_for(const Filled& ring, std::int64_t elements) const {
  if (ring.segments.empty()) return 0;
  if (ring.opened - ring.freed >= kEntries) return std::nullopt;
  const std::int64_t first = ring.segments.front().offset, last = ring.segments.back().offset;
  const std::int64_t head = last + ring.segments.back().elements;
  if (last < first) return first - head >= elements ? std::optional(head) : std::nullopt;
  if (ring_elements_ - head >= elements) return head;
  return first >= elements ? std::optional<std::int64_t>(0) : std::nullopt;
}

float* GradientRings::open(int micro_batch, int place, int bucket, const std::function<void()>& waits) {
  if (bucket == streamed_.front()) take_ring(micro_batch, place);
  const int number = ring_of(micro_batch);
  Filled& mine = filled_[number];
  LOCKSTEP_CHECK(bucket_of(mine.opened) == bucket, "a micro-batch's buckets come in order");
  const std::int64_t elements = whole_lines(std::max<std::int64_t>(buckets_.at(bucket).elements, 1));
  while (true) {
    const std::uint32_t rings = doorbell(local_rank_).rings();
    free_read(number);
    if (const auto offset = room_for(mine, elements)) {
      mine.segments.push_back({*offset, elements});
      ++mine.opened;
      return memory(local_rank_, number) + *offset;
    }
    waits();
    communicator_.check_peers();
    doorbell(local_rank_).wait(rings, Clock::now() + kCheckInterval);
  }
}

int GradientRings::slowest_reader(int micro_batch) {
  const int number = ring_of(micro_batch);
  int slowest = 0;
  for (int reader = 1; reader < static_cast<int>(local_ranks_.size()); ++reader) {
    if (read_by(reader, local_rank_, number) < read_by(slowest, local_rank_, number)) slowest = reader;
  }
  return local_ranks_[slowest];
}

void GradientRings::publish(int micro_batch, int bucket, std::uint64_t epoch) {
  const int number = ring_of(micro_batch);
  Filled& mine = filled_[number];
  LOCKSTEP_CHECK(bucket_of(mine.published) == bucket && mine.published < mine.opened,
                 "ready() comes after buffer(), bucket by bucket");
  Shared& shown = ring(local_rank_, number);
  shown.entries[mine.published % kEntries] = {epoch, micro_batch, mine.segments[mine.published - mine.freed].offset};
  shown.published.store(++mine.published, std::memory_order_release);
  for (int r = 0; r < static_cast<int>(local_ranks_.size()); ++r) doorbell(r).ring();
  if (bucket != streamed_.back()) return;
  const std::lock_guard lock(mutex_);
  mine.micro_batch = -1;
}

bool GradientRings::read_new(std::uint64_t epoch, const std::function<bool(const Published&)>& read) {
  bool any = false;
  for (int r = 0; r < static_cast<int>(local_ranks_.size()); ++r) {
    for (int l = 0; l < counts_[r]; ++l) {
      std::uint64_t& cursor = cursors_[r][l];
      const Shared& from = ring(r, l);
      while (cursor < from.published.load(std::memory_order_acquire)) {
        const Entry& entry = from.entries[cursor % kEntries];
        const Published published{r, entry.micro_batch, bucket_of(cursor), memory(r, l) + entry.offset};
        if (entry.epoch != epoch || !read(published)) break;
        read_by(local_rank_, r, l).store(++cursor, std::memory_order_release);
        doorbell(r).ring();
        any = true;
      }
    }
  }
  return any;
}

}  // namespace lockstep::comm
