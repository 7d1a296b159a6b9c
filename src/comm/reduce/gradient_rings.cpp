#include "comm/reduce/gradient_rings.hpp"

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

GradientRings::GradientRings(Communicator& communicator, const GradientBuckets& buckets, int count, std::int64_t open,
                             std::chrono::milliseconds timeout)
    : communicator_(communicator),
      buckets_(buckets),
      timeout_(timeout),
      ring_elements_(elements(buckets, open)),
      filled_(static_cast<std::size_t>(count)) {
  const Hosts hosts(communicator.topology());
  local_ranks_ = hosts.ranks(hosts.host_of(communicator.rank()));
  local_rank_ = hosts.local_rank(communicator.rank());
  cursors_.assign(local_ranks_.size(), std::vector<std::uint64_t>(filled_.size()));
  map();
}

// Has room for all open buckets, wherever in the ring they begin, and for a worker to get ahead of its readers.
std::int64_t GradientRings::elements(const GradientBuckets& buckets, std::int64_t open) {
  std::int64_t all = 0, largest = 0;
  for (const GradientBuckets::Bucket& bucket : buckets.buckets) {
    all += whole_lines(bucket.elements);
    largest = std::max(largest, whole_lines(bucket.elements));
  }
  return std::max(whole_lines(open), largest) + largest + std::min(all, kAheadElements);
}

// Layout: doorbell | rings | what each reader has read | the rings' memory
void GradientRings::map() {
  const std::size_t rings = filled_.size();
  const std::size_t bytes = kCacheLine + rings * (sizeof(Shared) + local_ranks_.size() * sizeof(Count)) + kCacheLine +
                            rings * static_cast<std::size_t>(ring_elements_) * sizeof(float);
  memory_ = map_host_memory(communicator_, bytes,
                            [&](std::byte* block) {
                              new (block) Doorbell();
                              for (std::size_t l = 0; l < rings; ++l)
                                new (block + kCacheLine + l * sizeof(Shared)) Shared();
                              std::byte* const counts = block + kCacheLine + rings * sizeof(Shared);
                              for (std::size_t i = 0; i < rings * local_ranks_.size(); ++i)
                                new (counts + i * sizeof(Count)) Count();
                            },
                            {"shared memory", 0, timeout_});
}

Doorbell& GradientRings::doorbell(int local_rank) const {
  return *reinterpret_cast<Doorbell*>(memory_->block(local_rank));
}

GradientRings::Shared& GradientRings::ring(int local_rank, int number) const {
  return *reinterpret_cast<Shared*>(memory_->block(local_rank) + kCacheLine +
                                    static_cast<std::size_t>(number) * sizeof(Shared));
}

std::atomic<std::uint64_t>& GradientRings::read_by(int reader, int local_rank, int number) const {
  std::byte* const counts = memory_->block(local_rank) + kCacheLine + filled_.size() * sizeof(Shared);
  const std::size_t index = static_cast<std::size_t>(number) * local_ranks_.size() + static_cast<std::size_t>(reader);
  return reinterpret_cast<Count*>(counts + index * sizeof(Count))->value;
}

float* GradientRings::memory(int local_rank, int number) const {
  std::byte* const rings =
      memory_->block(local_rank) +
      round_up(kCacheLine + filled_.size() * (sizeof(Shared) + local_ranks_.size() * sizeof(Count)), kCacheLine);
  return reinterpret_cast<float*>(rings) + number * ring_elements_;
}

// A ring is used by one micro-batch at a time, from its first bucket to its last.
int GradientRings::ring_of(int micro_batch) {
  const std::lock_guard lock(mutex_);
  auto found =
      std::find_if(filled_.begin(), filled_.end(), [&](const Filled& ring) { return ring.micro_batch == micro_batch; });
  if (found == filled_.end()) {
    found = std::find_if(filled_.begin(), filled_.end(), [](const Filled& ring) { return ring.micro_batch < 0; });
    LOCKSTEP_CHECK(found != filled_.end(), "more micro-batches at a time than there are rings");
    found->micro_batch = micro_batch;
  }
  return static_cast<int>(found - filled_.begin());
}

void GradientRings::free_read(int number) {
  Filled& mine = filled_[static_cast<std::size_t>(number)];
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

float* GradientRings::open(int micro_batch, int bucket, const Operation& operation,
                           const std::function<void()>& check) {
  const int number = ring_of(micro_batch);
  Filled& mine = filled_[static_cast<std::size_t>(number)];
  LOCKSTEP_CHECK(static_cast<int>(mine.opened % bucket_count()) == bucket, "a micro-batch's buckets come in order");
  const std::int64_t elements = whole_lines(std::max<std::int64_t>(buckets_.at(bucket).elements, 1));
  auto start = Clock::now();
  while (true) {
    const std::uint32_t rings = doorbell().rings();
    free_read(number);
    if (const auto offset = room_for(mine, elements)) {
      mine.segments.push_back({*offset, elements});
      ++mine.opened;
      return memory(local_rank_, number) + *offset;
    }
    start = latest_progress(start, operation.watch);
    const auto now = Clock::now(), end = start + operation.timeout;
    if (now >= end) throw_unread(number, operation, seconds_since(start));
    check();
    communicator_.check_peers();
    doorbell().wait(rings, std::min(end, now + kCheckInterval));
  }
}

void GradientRings::throw_unread(int number, const Operation& operation, double seconds) const {
  int slowest = 0;
  for (int reader = 1; reader < static_cast<int>(local_ranks_.size()); ++reader) {
    if (read_by(reader, local_rank_, number) < read_by(slowest, local_rank_, number)) slowest = reader;
  }
  throw_deadline(communicator_.topology(), communicator_.rank(), local_ranks_[static_cast<std::size_t>(slowest)],
                 operation, seconds, "it has not read a gradient that stands in shared memory");
}

void GradientRings::publish(int micro_batch, int bucket, std::uint64_t epoch) {
  const int number = ring_of(micro_batch);
  Filled& mine = filled_[static_cast<std::size_t>(number)];
  LOCKSTEP_CHECK(static_cast<int>(mine.published % bucket_count()) == bucket && mine.published < mine.opened,
                 "ready() comes after buffer(), bucket by bucket");
  Shared& shown = ring(local_rank_, number);
  shown.entries[mine.published % kEntries] = {epoch, micro_batch, mine.segments[mine.published - mine.freed].offset};
  shown.published.store(++mine.published, std::memory_order_release);
  for (int r = 0; r < static_cast<int>(local_ranks_.size()); ++r) doorbell(r).ring();
  if (bucket + 1 < buckets_.count()) return;
  const std::lock_guard lock(mutex_);
  mine.micro_batch = -1;
}

bool GradientRings::read_new(std::uint64_t epoch, const std::function<void(const Published&)>& read) {
  bool any = false;
  for (int r = 0; r < static_cast<int>(local_ranks_.size()); ++r) {
    for (int l = 0; l < static_cast<int>(filled_.size()); ++l) {
      std::uint64_t& cursor = cursors_[static_cast<std::size_t>(r)][static_cast<std::size_t>(l)];
      const Shared& from = ring(r, l);
      while (cursor < from.published.load(std::memory_order_acquire)) {
        const Entry& entry = from.entries[cursor % kEntries];
        if (entry.epoch != epoch) break;
        read({r, entry.micro_batch, static_cast<int>(cursor % bucket_count()), memory(r, l) + entry.offset});
        read_by(local_rank_, r, l).store(++cursor, std::memory_order_release);
        doorbell(r).ring();
        any = true;
      }
    }
  }
  return any;
}

std::uint64_t GradientRings::micro_batches_published() const {
  std::uint64_t micro_batches = 0;
  for (const Filled& ring : filled_) micro_batches += ring.published / bucket_count();
  return micro_batches;
}

}  // namespace lockstep::comm
