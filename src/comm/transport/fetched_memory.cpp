#include "comm/transport/fetched_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "comm/transport/messages.hpp"
#include "core/spans.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

constexpr int kRequestTag = (1 << 14) + 1, kUnitTag = (1 << 14) + 2;
constexpr std::size_t kCacheLine = 64;

/// The state of a unit. Its fetches are numbered, so that every rank takes part once in each of them.
struct Word {
  enum class State : std::uint8_t { dropped, fetching, resident, dropping };
  std::uint64_t version = 0, number = 0, readers = 0;
  State state = State::dropped;

  static constexpr int kReaderBits = 22, kNumberBits = 16, kVersionBits = 24;
  static constexpr std::uint64_t kVersions = std::uint64_t{1} << kVersionBits;
  static constexpr std::uint64_t kNumbers = std::uint64_t{1} << kNumberBits;

  static Word of(std::uint64_t bits) {
    const auto take = [&bits](int count) {
      const std::uint64_t value = bits & ((std::uint64_t{1} << count) - 1);
      bits >>= count;
      return value;
    };
    Word word;
    word.readers = take(kReaderBits);
    word.state = static_cast<State>(take(2));
    word.number = take(kNumberBits);
    word.version = take(kVersionBits);
    return word;
  }
  std::uint64_t bits() const {
    return ((version % kVersions << kNumberBits | number % kNumbers) << 2 | static_cast<std::uint64_t>(state))
               << kReaderBits |
           readers;
  }
  bool is_of(std::uint64_t now) const { return version == now % kVersions; }
  bool is_resident(std::uint64_t now) const { return state == State::resident && is_of(now); }
  /// Whether a fetch may begin.
  bool is_gone(std::uint64_t now) const { return state == State::dropped || (state == State::resident && !is_of(now)); }
};

constexpr std::chrono::hours kUntilRung{1};
constexpr const char* kUse = "parameters";

std::string digest_of(const std::vector<std::vector<OwnedBytes>>& units) {
  std::vector<std::uint64_t> numbers;
  for (const auto& unit : units) {
    numbers.push_back(unit.size());
    for (const OwnedBytes& bytes : unit)
      numbers.insert(numbers.end(), {bytes.begin, bytes.end, static_cast<std::uint64_t>(bytes.owner)});
  }
  return digest_of_layout(numbers);
}

}  // namespace

FetchedMemory::FetchedMemory(Communicator& communicator, FetchedMemoryOptions options)
    : communicator_(communicator),
      options_(std::move(options)),
      hosts_(communicator.topology()),
      local_rank_(hosts_.local_rank(communicator.rank())),
      local_ranks_(hosts_.ranks(hosts_.host_of(communicator.rank()))),
      exceptions_(std::uncaught_exceptions()),
      fetchers_(options_.units.size()),
      foreign_(options_.units.size()),
      fetched_(options_.units.size()) {
  map();
  find_shares();
  if (hosts_.count() == 1) return;
  for (int host = 0; host < hosts_.count(); ++host) {
    if (host == hosts_.host_of(communicator.rank())) continue;
    readers_.push_back({hosts_.leader(host, communicator.rank()), std::make_unique<Request>(), nullptr});
    listen_to(readers_.back());
  }
  thread_ = std::thread([this] { run_thread(); });
}

FetchedMemory::~FetchedMemory() {
  if (!thread_.joinable()) return;
  if (std::uncaught_exceptions() == exceptions_) {
    try {
      say_goodbye();
    } catch (const std::exception&) {  // this rank or another has failed, which is reported elsewhere
    }
  }
  stop_ = true;
  doorbell().ring();
  thread_.join();
}

// Maps each rank's doorbell; the host's first rank also has the clock and the states of the units.
void FetchedMemory::map() {
  const Operation operation{"memory of parameters", 0, options_.timeout};
  const bool is_first = local_rank_ == 0;
  const std::size_t units = options_.units.size();
  const std::string layout = fmt::format("{} bytes in {} units, {}", options_.bytes, units, digest_of(options_.units));
  control_ = map_host_memory(communicator_,
                             {.bytes = kCacheLine + (is_first ? sizeof(HostClock) + units * sizeof(Shared) : 0),
                              .prepare =
                                  [&](std::byte* block) {
                                    new (block) Doorbell();
                                    if (!is_first) return;
                                    new (block + kCacheLine) HostClock();
                                    for (std::size_t u = 0; u < units; ++u)
                                      new (block + kCacheLine + sizeof(HostClock) + u * sizeof(Shared)) Shared();
                                  },
                              .layout = layout,
                              .use = kUse},
                             operation);
  HostBlock block{.bytes = is_first ? std::max(options_.bytes, kCacheLine) : kCacheLine, .layout = layout, .use = kUse};
  if (hosts_.count() > 1) block.written = is_first ? own_ranges() : std::vector<ByteRange>();
  block_ = map_host_memory(communicator_, block, operation);
}

// What ranks of this host own is never dropped.
std::vector<ByteRange> FetchedMemory::own_ranges() const {
  std::vector<ByteRange> own;
  for (const auto& unit : options_.units) {
    for (const OwnedBytes& bytes : unit) {
      if (communicator_.topology().same_host(bytes.owner, communicator_.rank()))
        own.push_back({bytes.begin, bytes.end});
    }
  }
  return own;
}

void FetchedMemory::find_shares() {
  const int own_host = hosts_.host_of(communicator_.rank());
  for (std::size_t u = 0; u < options_.units.size(); ++u) {
    auto& runs = foreign_[u];
    bool follows_foreign = false;
    for (const OwnedBytes& bytes : options_.units[u]) {
      const bool foreign = hosts_.host_of(bytes.owner) != own_host;
      if (foreign) fetchers_[u].push_back(hosts_.leader(own_host, bytes.owner));
      if (foreign && follows_foreign && bytes.begin - runs.back().second < kCacheLine) {
        runs.back().second = bytes.end;  // including the gap on the cache line between two tensors
      } else if (foreign) {
        runs.emplace_back(bytes.begin, bytes.end);
      }
      follows_foreign = foreign;
    }
    std::sort(fetchers_[u].begin(), fetchers_[u].end());
    fetchers_[u].erase(std::unique(fetchers_[u].begin(), fetchers_[u].end()), fetchers_[u].end());
  }
}

FetchedMemory::Shared& FetchedMemory::shared(int unit) const {
  return *reinterpret_cast<Shared*>(control_->block(0) + kCacheLine + sizeof(HostClock) + unit * sizeof(Shared));
}

FetchedMemory::HostClock& FetchedMemory::host_clock() const {
  return *reinterpret_cast<HostClock*>(control_->block(0) + kCacheLine);
}

Doorbell& FetchedMemory::doorbell(int local_rank) const {
  return *reinterpret_cast<Doorbell*>(control_->block(local_rank));
}

void FetchedMemory::ring_all() const {
  for (int r = 0; r < static_cast<int>(local_ranks_.size()); ++r) doorbell(r).ring();
}

void FetchedMemory::prefetch(int unit) {
  if (is_foreign(unit)) begin_fetch(unit, false);
}

void FetchedMemory::acquire(int unit, const Operation& operation) {
  if (!is_foreign(unit)) return;
  RanTime waited;
  std::atomic<std::uint64_t>& bits = shared(unit).word;
  while (true) {
    const std::uint32_t rings = doorbell().rings();
    std::uint64_t seen = bits.load(std::memory_order_acquire);
    Word word = Word::of(seen);
    if (word.is_resident(version_)) {
      ++word.readers;
      if (bits.compare_exchange_weak(seen, word.bits(), std::memory_order_acq_rel)) return;
      continue;
    }
    if (word.is_gone(version_)) {
      begin_fetch(unit, true);
      continue;
    }
    check(operation, waited, unit);
    doorbell().wait(rings, Clock::now() + kCheckInterval);
  }
}

void FetchedMemory::release(int unit) {
  if (!is_foreign(unit)) return;
  shared(unit).last_used.store(++host_clock().now, std::memory_order_relaxed);
  shared(unit).word.fetch_sub(1, std::memory_order_acq_rel);  // the lowest bits count readers
}

// Does nothing if another thread is faster.
void FetchedMemory::begin_fetch(int unit, bool demanded) {
  std::atomic<std::uint64_t>& bits = shared(unit).word;
  if (!Word::of(bits.load(std::memory_order_acquire)).is_gone(version_)) return;
  if (!make_room() && !demanded) return;
  std::uint64_t seen = bits.load(std::memory_order_acquire);
  Word word = Word::of(seen);
  if (!word.is_gone(version_)) return;
  word = {.version = version_, .number = word.number + 1, .readers = 0, .state = Word::State::fetching};
  if (!bits.compare_exchange_strong(seen, word.bits(), std::memory_order_acq_rel)) return;
  for (const int rank : fetchers_[unit]) doorbell(hosts_.local_rank(rank)).ring();
}

bool FetchedMemory::make_room() {
  int kept = 0;
  for (int u = 0; u < units(); ++u) {
    kept += is_foreign(u) && Word::of(shared(u).word.load()).state != Word::State::dropped ? 1 : 0;
  }
  for (; kept >= options_.kept; --kept) {
    if (!drop_oldest()) return false;
  }
  return true;
}

// Drops a unit without readers: one of an older version, else the least recently used one.
bool FetchedMemory::drop_oldest() {
  int oldest = -1;
  std::uint64_t seen = 0, used = 0;
  for (int u = 0; u < units(); ++u) {
    const std::uint64_t bits = shared(u).word.load(std::memory_order_acquire);
    const Word word = Word::of(bits);
    if (!is_foreign(u) || word.state != Word::State::resident || word.readers > 0) continue;
    const std::uint64_t last = word.is_of(version_) ? shared(u).last_used.load(std::memory_order_relaxed) + 1 : 0;
    if (oldest >= 0 && last >= used) continue;
    oldest = u;
    seen = bits;
    used = last;
  }
  if (oldest < 0) return false;
  Word word = Word::of(seen);
  word.state = Word::State::dropping;
  if (!shared(oldest).word.compare_exchange_strong(seen, word.bits(), std::memory_order_acq_rel)) return false;
  for (const auto& [begin, end] : foreign_[oldest]) block_->release_pages(0, {begin, end});
  word.state = Word::State::dropped;
  shared(oldest).word.store(word.bits(), std::memory_order_release);
  ring_all();  // another thread may be waiting to fetch it again
  return true;
}

void FetchedMemory::check(const Operation& operation, RanTime& waited, int unit) const {
  if (failed_.load(std::memory_order_acquire)) std::rethrow_exception(error_);
  communicator_.check_peers();
  throw_if_stopped(communicator_.topology(), communicator_.rank(), operation);
  if (waited.look() < operation.timeout) return;
  int owner = -1;
  for (const OwnedBytes& bytes : options_.units[unit]) {
    if (!communicator_.topology().same_host(bytes.owner, communicator_.rank())) owner = bytes.owner;
  }
  throw_deadline(communicator_.topology(), communicator_.rank(), owner, operation, waited.seconds(),
                 fmt::format("unit {} of the parameters has not come", unit));
}

void FetchedMemory::settle(const Operation& operation) {
  RanTime waited;
  for (int u = 0; u < units(); ++u) {
    while (true) {
      const std::uint32_t rings = doorbell().rings();
      if (Word::of(shared(u).word.load(std::memory_order_acquire)).state != Word::State::fetching) break;
      check(operation, waited, u);
      doorbell().wait(rings, Clock::now() + kCheckInterval);
    }
  }
}

void FetchedMemory::next_version() {
  ++version_;
}

void FetchedMemory::run_thread() {
  try {
    while (!stop_) {
      const std::uint32_t rings = doorbell().rings();
      const bool answered = answer(), began = fetch(), finished = finish_fetches();
      std::erase_if(sent_, [](const Sent& sent) { return sent.transfer->done(); });
      is_quiet_ = sent_.empty() && std::none_of(readers_.begin(), readers_.end(),
                                                [](const Reader& reader) { return reader.transfer != nullptr; });
      if (answered || began || finished) continue;
      // The doorbell does not ring when a message has left.
      doorbell().wait(rings, sent_.empty() ? Clock::now() + kUntilRung : Clock::now() + kCheckInterval);
    }
  } catch (...) {
    error_ = std::current_exception();
    failed_.store(true, std::memory_order_release);
    ring_all();
  }
}

void FetchedMemory::listen_to(Reader& reader) {
  reader.transfer = communicator_.receive(std::as_writable_bytes(std::span(reader.request.get(), 1)), reader.rank,
                                          kRequestTag, [this] { doorbell().ring(); });
}

bool FetchedMemory::answer() {
  bool any = false;
  for (Reader& reader : readers_) {
    if (!reader.transfer || !reader.transfer->done()) continue;
    any = true;
    const std::int64_t unit = reader.request->unit;
    reader.transfer.reset();
    if (unit < 0) continue;
    listen_to(reader);
    for (const OwnedBytes& bytes : options_.units.at(unit)) {
      if (bytes.owner != communicator_.rank()) continue;
      in_messages(std::span(data() + bytes.begin, data() + bytes.end), [&](std::span<std::byte> message) {
        bytes_sent_ += message.size();
        sent_.push_back({nullptr, communicator_.send(message, reader.rank, kUnitTag)});
      });
    }
  }
  return any;
}

bool FetchedMemory::fetch() {
  bool any = false;
  for (int u = 0; u < units(); ++u) {
    const auto& fetchers = fetchers_[u];
    if (!std::binary_search(fetchers.begin(), fetchers.end(), communicator_.rank())) continue;
    const Word word = Word::of(shared(u).word.load(std::memory_order_acquire));
    if (word.state != Word::State::fetching || word.number == fetched_[u]) continue;
    fetched_[u] = word.number;
    send_for(u);
    any = true;
  }
  return any;
}

// Requests the unit from each owner that this rank leads for. Messages between two ranks arrive in the order of the
// requests.
void FetchedMemory::send_for(int unit) {
  Fetch next{unit, {}};
  std::vector<int> asked;
  for (const OwnedBytes& bytes : options_.units[unit]) {
    if (!hosts_.receives_from(communicator_.rank(), bytes.owner)) continue;
    const std::span there(data() + bytes.begin, data() + bytes.end);
    block_->take_pages(0, {bytes.begin, bytes.end});
    in_messages(there, [&](std::span<std::byte> message) {
      next.receives.push_back(communicator_.receive(message, bytes.owner, kUnitTag, [this] { doorbell().ring(); }));
    });
    if (std::find(asked.begin(), asked.end(), bytes.owner) != asked.end()) continue;
    asked.push_back(bytes.owner);
    auto request = std::make_unique<Request>(Request{unit});
    auto transfer = communicator_.send(std::as_bytes(std::span(request.get(), 1)), bytes.owner, kRequestTag);
    sent_.push_back({std::move(request), std::move(transfer)});
  }
  under_way_.push_back(std::move(next));
}

bool FetchedMemory::finish_fetches() {
  const auto count = std::erase_if(under_way_, [this](const Fetch& fetch) {
    const auto is_done = [](const auto& receive) { return receive->done(); };
    if (!std::all_of(fetch.receives.begin(), fetch.receives.end(), is_done)) return false;
    share_done(fetch.unit);
    return true;
  });
  return count > 0;
}

// The last of the ranks that fetch it for this host marks it resident.
void FetchedMemory::share_done(int unit) {
  Shared& state = shared(unit);
  const std::size_t all = fetchers_[unit].size();
  if (state.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 < all) return;
  state.arrived.store(0, std::memory_order_relaxed);
  state.last_used.store(++host_clock().now, std::memory_order_relaxed);
  Word word = Word::of(state.word.load(std::memory_order_acquire));
  word.state = Word::State::resident;
  state.word.store(word.bits(), std::memory_order_release);
  ring_all();
}

// Sends this rank's last message to each owner that it requests from; then waits for the last messages of its readers.
void FetchedMemory::say_goodbye() {
  const Operation operation{"end of fetched memory", 0, options_.timeout};
  communicator_.barrier(operation);  // from here on nobody reads
  const Request goodbye{-1};
  std::vector<std::unique_ptr<Transfer>> sends;
  for (int owner = 0; owner < communicator_.size(); ++owner) {
    if (!hosts_.receives_from(communicator_.rank(), owner)) continue;
    sends.push_back(communicator_.send(std::as_bytes(std::span(&goodbye, 1)), owner, kRequestTag));
  }
  for (const auto& send : sends) send->wait(operation);
  for (const auto end = deadline_of(operation); !is_quiet_ && !failed_ && Clock::now() < end;) {
    communicator_.check_peers();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace lockstep::comm
