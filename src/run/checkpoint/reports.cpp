#include "run/checkpoint/reports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <thread>

#include "core/ran_time.hpp"
#include "lockstep/error.hpp"

namespace lockstep::checkpoint {

namespace {

using std::chrono::milliseconds;

constexpr int kTag = 1 << 18;
constexpr std::size_t kFailureChars = 1024;
constexpr std::size_t kHeadBytes = sizeof(std::int64_t) + kFailureChars;
constexpr milliseconds kShortest{1}, kLongest{10};
constexpr milliseconds kForever = std::chrono::hours(24 * 365);  // milliseconds::max() has too many nanoseconds

/// In the place of the step, in messages that are no reports.
std::int64_t going_on(std::int64_t step) {
  return -step - 1;
}

void pack(std::int64_t step, const WriteReport& report, std::vector<std::byte>& bytes) {
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  std::memcpy(bytes.data(), &step, sizeof step);
  std::memcpy(bytes.data() + sizeof step, report.failure.data(), std::min(report.failure.size(), kFailureChars - 1));
  if (report.failure.empty()) {
    std::memcpy(bytes.data() + kHeadBytes, report.hashes.data(), report.hashes.size() * kHashChars);
  }
}

std::int64_t unpack(const std::vector<std::byte>& bytes, WriteReport& report) {
  std::int64_t step = 0;
  std::memcpy(&step, bytes.data(), sizeof step);
  report.failure = reinterpret_cast<const char*>(bytes.data() + sizeof step);  // its last byte is always 0
  report.hashes.resize((bytes.size() - kHeadBytes) / kHashChars);
  std::memcpy(report.hashes.data(), bytes.data() + kHeadBytes, report.hashes.size() * kHashChars);
  return step;
}

}  // namespace

WriteReports::WriteReports(Communicator& communicator, const std::vector<Part>& parts) : communicator_(communicator) {
  std::map<int, std::size_t> hashes;
  for (const auto& part : parts) hashes[part.rank] += 1 + part.pieces.size();
  for (const auto& [rank, count] : hashes) {
    if (rank == 0 || (communicator.rank() != 0 && rank != communicator.rank())) continue;
    channels_.push_back({.rank = communicator.rank() == 0 ? rank : 0,
                         .hashes = count,
                         .bytes = std::vector<std::byte>(kHeadBytes + count * kHashChars),
                         .transfer = nullptr});
  }
}

milliseconds WriteReports::limit(milliseconds timeout) const {
  const auto shorter = shorter_timeout_.load();
  return shorter >= 0 ? std::min(timeout, milliseconds(shorter)) : timeout;
}

bool WriteReports::wait(Transfer* transfer, milliseconds timeout) const {
  RanTime waited;
  for (milliseconds nap = kShortest; transfer != nullptr && !transfer->done(); nap = std::min(2 * nap, kLongest)) {
    communicator_.check_peers();
    if (waited.look() >= limit(timeout)) return false;
    std::this_thread::sleep_for(nap);
  }
  return true;
}

void WriteReports::goes_on(std::int64_t step, milliseconds period) {
  Channel& to = channels_.at(0);
  if (Clock::now() - went_on_ < period || (to.transfer && !to.transfer->done())) return;
  went_on_ = Clock::now();
  pack(going_on(step), {}, to.bytes);
  to.transfer = communicator_.send(to.bytes, to.rank, kTag);
}

// Rank 0 takes them when its own files are written, however long that takes.
void WriteReports::send(std::int64_t step, const WriteReport& report, milliseconds timeout) {
  Channel& to = channels_.at(0);
  if (!wait(to.transfer.get(), kForever)) {
    throw Error(ExitCode::infrastructure, "rank 0 does not take the report of the checkpoint before");
  }
  pack(step, report, to.bytes);
  to.transfer = communicator_.send(to.bytes, to.rank, kTag);
  (void)wait(to.transfer.get(), timeout);
}

/// The step of a message that has arrived, if one has.
std::optional<std::int64_t> WriteReports::take(Channel& from, WriteReport& report) {
  if (!from.transfer) from.transfer = communicator_.receive(from.bytes, from.rank, kTag);
  if (!from.transfer->done()) return std::nullopt;
  from.transfer.reset();
  return unpack(from.bytes, report);
}

std::vector<WriteReport> WriteReports::receive(std::int64_t step, milliseconds timeout) {
  std::vector<WriteReport> reports(channels_.size());
  std::vector<bool> has_reported(channels_.size());
  RanTime still;
  for (milliseconds nap = kShortest;; nap = std::min(2 * nap, kLongest)) {
    bool all = true;
    for (std::size_t i = 0; i < channels_.size(); ++i) {
      // Late reports of earlier checkpoints are skipped.
      for (std::optional<std::int64_t> of; !has_reported[i] && (of = take(channels_[i], reports[i]));) {
        has_reported[i] = of == step;
        if (has_reported[i] || of == going_on(step)) still = RanTime();
      }
      reports[i].rank = channels_[i].rank;
      all = all && has_reported[i];
    }
    if (all) return reports;
    communicator_.check_peers();
    if (still.look() >= limit(timeout)) break;
    std::this_thread::sleep_for(nap);
  }
  for (std::size_t i = 0; i < reports.size(); ++i) {
    if (has_reported[i]) continue;
    reports[i].failure = fmt::format("it has written no file for {:.0f} seconds", still.seconds());
    reports[i].hashes.clear();
  }
  return reports;
}

}  // namespace lockstep::checkpoint
