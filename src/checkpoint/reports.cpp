#include "checkpoint/reports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <thread>

#include "lockstep/error.hpp"

namespace lockstep::checkpoint {

namespace {

using std::chrono::milliseconds;

constexpr int kTag = 1 << 18;
constexpr std::size_t kFailureChars = 1024;
constexpr std::size_t kHeadBytes = sizeof(std::int64_t) + kFailureChars;
constexpr milliseconds kShortest{1}, kLongest{10};

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

void WriteReports::wait(Transfer& transfer, milliseconds timeout, RanTime& waited) const {
  for (milliseconds nap = kShortest; !transfer.done(); nap = std::min(2 * nap, kLongest)) {
    communicator_.check_peers();
    const auto shorter = shorter_timeout_.load();
    if (waited.look() >= (shorter >= 0 ? std::min(timeout, milliseconds(shorter)) : timeout)) return;
    std::this_thread::sleep_for(nap);
  }
}

void WriteReports::send(std::int64_t step, const WriteReport& report, milliseconds timeout) {
  Channel& to = channels_.at(0);
  RanTime waited;
  if (to.transfer) wait(*to.transfer, timeout, waited);
  if (to.transfer && !to.transfer->done()) {
    throw Error(ExitCode::infrastructure, "rank 0 does not take the report of the checkpoint before");
  }
  pack(step, report, to.bytes);
  to.transfer = communicator_.send(to.bytes, to.rank, kTag);
  wait(*to.transfer, timeout, waited);
}

WriteReport WriteReports::receive(Channel& from, std::int64_t step, milliseconds timeout, RanTime& waited) {
  WriteReport report;
  for (std::int64_t reported = -1; reported != step;) {  // skips late reports of earlier checkpoints
    if (!from.transfer) from.transfer = communicator_.receive(from.bytes, from.rank, kTag);
    wait(*from.transfer, timeout, waited);
    if (!from.transfer->done()) {
      report.failure = fmt::format("its files were not written within {:.0f} seconds", waited.seconds());
      break;
    }
    reported = unpack(from.bytes, report);
    from.transfer.reset();
  }
  report.rank = from.rank;
  return report;
}

std::vector<WriteReport> WriteReports::receive(std::int64_t step, milliseconds timeout) {
  std::vector<WriteReport> reports;
  RanTime waited;
  for (auto& from : channels_) reports.push_back(receive(from, step, timeout, waited));
  return reports;
}

}  // namespace lockstep::checkpoint
