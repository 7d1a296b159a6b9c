#include "run/checkpoint/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <span>
#include <utility>

#include "comm/transport/messages.hpp"
#include "comm/transport/recorded.hpp"
#include "core/background.hpp"
#include "core/digest.hpp"
#include "lockstep/error.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/checkpoint/run_directory.hpp"

namespace lockstep::checkpoint {

namespace {

constexpr int kPieceTag = 81;  // for pieces of files, to the ranks that write them
constexpr std::byte kIdle{0}, kStill{1}, kWriting{2};
constexpr int kMessagesBeforeDeadline = 8;
constexpr int kGivenUp = 6;  ///< deadlines without another file; until then a call such as fsync() may still return

using std::chrono::milliseconds;

HashText hash_of(std::span<const std::byte> bytes) {
  const std::string hex = sha256(bytes);
  HashText text{};
  std::copy_n(hex.begin(), text.size(), text.begin());
  return text;
}

std::string to_string(const HashText& hash) {
  return {hash.data(), hash.size()};
}

std::size_t bytes_of(const exec::Extent& extent) {
  return (extent.end - extent.begin) * sizeof(float);
}

/// Offset in the file.
std::size_t offset_of(const PartPiece& piece, const PartPiece::Source& source) {
  return piece.offset + bytes_of({piece.begin, source.extent.begin});
}

void remove_quietly(FileSystem& files, const std::string& path) {
  try {
    remove_tree(files, path);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): why it is removed has been reported
  }
}

/// This rank's messages, with only a few under way at a time, so that the deadline of one is not spent on others. All
/// ranks have theirs in the same order, so both ranks of the first unfinished message are waiting for it: there is no
/// deadlock.
class FewMessages {
 public:
  explicit FewMessages(const Operation& operation) : operation_(operation) {}
  void add(std::unique_ptr<Transfer> transfer) {
    under_way_.push_back(std::move(transfer));
    if (under_way_.size() > kMaxUnderWay) wait_for_first();
  }
  void wait() {
    while (!under_way_.empty()) wait_for_first();
  }

 private:
  static constexpr std::size_t kMaxUnderWay = 16;
  void wait_for_first() {
    under_way_.front()->wait(operation_);
    under_way_.pop_front();
  }
  Operation operation_;
  std::deque<std::unique_ptr<Transfer>> under_way_;
};

/// All failures, each with the rank that reports it.
std::string failures_of(const std::vector<WriteReport>& reports, const Topology& topology) {
  std::string text;
  for (const auto& report : reports) {
    if (report.failure.empty()) continue;
    if (!text.empty()) text += "; ";
    if (topology.host_of.size() > 1) {
      text += fmt::format("rank {} on {}: ", report.rank, topology.host_name(report.rank));
    }
    text += report.failure;
  }
  return text;
}

Manifest make_manifest(const Progress& progress, const std::vector<TensorSource>& tensors,
                       const std::vector<Part>& parts, const std::vector<WriteReport>& reports) {
  Manifest manifest;
  manifest.progress = progress;
  for (const auto& tensor : tensors) manifest.tensors.push_back({tensor.name, tensor.shape, {}});
  for (const auto& report : reports) {
    std::size_t next = 0;
    for (const auto& part : parts) {
      if (part.rank != report.rank) continue;
      manifest.files[part.file] = {part.bytes, to_string(report.hashes.at(next++)), ""};
      for (const auto& piece : part.pieces) {
        manifest.tensors[piece.tensor].pieces.push_back(
            {part.file, piece.begin, piece.end, to_string(report.hashes.at(next++))});
      }
    }
  }
  for (auto& tensor : manifest.tensors) {
    std::sort(tensor.pieces.begin(), tensor.pieces.end(),
              [](const auto& a, const auto& b) { return a.begin < b.begin; });
  }
  return manifest;
}

}  // namespace

CheckpointWriter::CheckpointWriter(Communicator& communicator, std::vector<TensorSource> tensors, WriterOptions options,
                                   FileSystem& files)
    : communicator_(communicator),
      tensors_(std::move(tensors)),
      options_(std::move(options)),
      files_(files),
      parts_(plan_parts(tensors_, options_.part_bytes, communicator.topology())),
      reports_(communicator, parts_) {
  for (const auto& tensor : tensors_) {
    const bool holds = std::any_of(tensor.holdings.begin(), tensor.holdings.end(),
                                   [&](const Holding& holding) { return has(holding.ranks, communicator.rank()); });
    LOCKSTEP_CHECK((!holds && !tensor.holdings.empty()) ||
                       static_cast<std::int64_t>(tensor.values.size()) == elements(tensor.shape),
                   tensor.name);
  }
  std::size_t bytes = 0;
  for (const auto& part : parts_) bytes += part.rank == communicator.rank() ? part.bytes : 0;
  buffer_ = AlignedBytes(bytes);
  if (bytes > 0) std::memset(buffer_.data(), 0, bytes);  // so that the first copy does not fault in new memory
  if (bytes > 0 || leads()) thread_ = std::thread([this] { run(); });
}

CheckpointWriter::~CheckpointWriter() {
  reports_.shorten_timeouts(options_.after_error);
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool CheckpointWriter::begin(const Progress& progress, bool best) {
  const auto start = Clock::now();
  if (!all_idle(progress.step)) return false;
  copy(progress.step);
  if (!thread_.joinable()) return true;
  {
    const std::lock_guard lock(mutex_);
    task_ = Task{progress, best, start, seconds_since(start), trace_};
  }
  changed_.notify_all();
  return true;
}

// Polls in rounds shorter than the ranks' timeout; all ranks count the same rounds.
bool CheckpointWriter::all_idle(std::int64_t step) {
  const milliseconds round = options_.timeout / 3;
  const Operation operation{"checkpoint", static_cast<std::uint64_t>(step), options_.timeout};
  std::vector<std::byte> busy(communicator_.size());
  std::uint64_t written = written_;
  for (milliseconds still{0}; still <= 2 * options_.deadline; still += round) {
    const bool idle = idle_within(round);
    const std::uint64_t before = std::exchange(written, written_.load());
    const std::byte mine = idle ? kIdle : written == before ? kStill : kWriting;
    communicator_.all_gather({&mine, 1}, busy, operation);
    const std::byte most = *std::max_element(busy.begin(), busy.end());
    if (most == kIdle) return true;
    if (most == kWriting) still = milliseconds(0);
  }
  return false;
}

std::vector<CheckpointOutcome> CheckpointWriter::finished() {
  const std::lock_guard lock(mutex_);
  return std::exchange(outcomes_, {});
}

std::string CheckpointWriter::finish() {
  if (!all_idle(0)) return kNoAnswer;
  struct {
    std::array<char, 1024> text{};
    char lost = 0;
  } failure;
  if (leads()) {
    const std::lock_guard lock(mutex_);
    std::copy_n(last_failure_.begin(), std::min(last_failure_.size(), failure.text.size() - 1), failure.text.begin());
    failure.lost = lost_ ? 1 : 0;
  }
  communicator_.broadcast(std::as_writable_bytes(std::span(&failure, 1)), 0, {"checkpoint", 0, options_.timeout});
  lost_ = failure.lost != 0;
  return failure.text.data();
}

bool CheckpointWriter::idle_within(milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [this] { return !task_; });
}

// The only part that training waits for.
void CheckpointWriter::copy(std::int64_t step) {
  exchange(step);
  std::byte* to = buffer_.data();
  for (const auto& part : parts_) {
    if (part.rank != communicator_.rank()) continue;
    std::memcpy(to, part.header.data(), part.header.size());
    for (const auto& piece : part.pieces) {
      for (const auto& source : piece.sources) {
        const auto from = source.rank == part.rank ? own_bytes(piece, source) : std::span<const std::byte>();
        if (!from.empty()) std::memcpy(to + offset_of(piece, source), from.data(), from.size());
      }
    }
    to += part.bytes;
  }
}

void CheckpointWriter::exchange(std::int64_t step) {
  FewMessages messages({"checkpoint", static_cast<std::uint64_t>(step), options_.timeout});
  const int rank = communicator_.rank();
  std::byte* to = buffer_.data();
  for (const auto& part : parts_) {
    for (const auto& piece : part.pieces) {
      for (const auto& source : piece.sources) {
        if (source.rank == part.rank) continue;
        if (part.rank == rank) {
          comm::in_messages(std::span(to + offset_of(piece, source), bytes_of(source.extent)),
                            [&](auto bytes) { messages.add(communicator_.receive(bytes, source.rank, kPieceTag)); });
        } else if (source.rank == rank) {
          comm::in_messages(own_bytes(piece, source),
                            [&](auto bytes) { messages.add(communicator_.send(bytes, part.rank, kPieceTag)); });
        }
      }
    }
    if (part.rank == rank) to += part.bytes;
  }
  messages.wait();
}

std::span<const std::byte> CheckpointWriter::own_bytes(const PartPiece& piece, const PartPiece::Source& source) const {
  return std::as_bytes(tensors_[piece.tensor].values)
      .subspan(source.extent.begin * sizeof(float), bytes_of(source.extent));
}

// At low priority, so that hashing takes the gaps that training leaves: training waits for its slowest thread.
void CheckpointWriter::run() {
  work_in_background();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return task_ || stop_; });
    if (!task_) return;
    const Task task = *task_;
    lock.unlock();
    work(task);
    lock.lock();
    task_.reset();
    changed_.notify_all();
  }
}

void CheckpointWriter::work(const Task& task) {
  CheckpointOutcome outcome;
  try {
    WriteReport own = write_own(task, options_.directory + "/" + checkpoint_name(task.progress.step));
    if (!leads()) return reports_.send(task.progress.step, own, options_.deadline);
    outcome = conclude(task, std::move(own));
  } catch (const std::exception& error) {  // of the communicator: the run will detect it, too
    outcome = {.step = task.progress.step, .failure = error.what(), .newest = options_.newest};
  }
  const std::lock_guard lock(mutex_);
  last_failure_ = outcome.failure;
  if (leads()) outcomes_.push_back(std::move(outcome));
}

TraceScope CheckpointWriter::span_of(const Task& task, const char* name) {
  return {task.trace.get(), name, static_cast<std::uint64_t>(task.progress.step - 1), kCheckpointTrack};
}

WriteReport CheckpointWriter::write_own(const Task& task, const std::string& directory) {
  const TraceScope span = span_of(task, "write");
  WriteReport report{.rank = communicator_.rank(), .failure = {}, .hashes = {}};
  std::vector<std::string> written;
  try {
    options_.may_write();
    make_directories(files_, directory);
    std::span<const std::byte> rest(buffer_.data(), buffer_.size());
    for (const auto& part : parts_) {
      if (part.rank != communicator_.rank()) continue;
      const auto bytes = rest.first(part.bytes);
      rest = rest.subspan(part.bytes);
      report.hashes.push_back(hash_of(bytes.first(part.header.size())));
      for (const auto& piece : part.pieces) {
        report.hashes.push_back(hash_of(bytes.subspan(piece.offset, bytes_of({piece.begin, piece.end}))));
      }
      written.push_back(directory + "/" + part.file);
      write_whole(files_, written.back(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      ++written_;
      if (const auto recorder = comm::recorder_of(communicator_)) recorder->tick();  // waiting for it is no hang
      if (!leads()) reports_.goes_on(task.progress.step, options_.deadline / kMessagesBeforeDeadline);
    }
    files_.sync_directory(directory);
  } catch (const std::exception& error) {
    report.failure = error.what();
    for (const auto& path : written) {  // frees room on a full disk
      remove_quietly(files_, path + ".partial");
      remove_quietly(files_, path);
    }
  }
  return report;
}

CheckpointOutcome CheckpointWriter::conclude(const Task& task, WriteReport own) {
  const TraceScope span = span_of(task, "commit");
  CheckpointOutcome outcome{.step = task.progress.step,
                            .path = options_.directory + "/" + checkpoint_name(task.progress.step),
                            .best = task.best,
                            .blocked_seconds = task.blocked_seconds};
  auto reports = reports_.receive(task.progress.step, kGivenUp * options_.deadline);
  reports.insert(reports.begin(), std::move(own));
  outcome.failure = failures_of(reports, communicator_.topology());
  try {
    options_.may_write();
  } catch (const std::exception& error) {  // what stands there may be the other launch's
    lost_ = dynamic_cast<const LostDirectory*>(&error) != nullptr;
    outcome.failure = error.what();
    outcome.newest = options_.newest;
    return outcome;
  }
  try {
    if (outcome.failure.empty()) commit(task, reports, outcome.path);
  } catch (const std::exception& error) {
    outcome.failure = error.what();
  }
  if (!outcome.failure.empty()) {
    remove_quietly(files_, outcome.path);  // a rank whose report is overdue fails when it writes there
    outcome.newest = options_.newest;
    return outcome;
  }
  options_.newest = outcome.newest = outcome.path;
  try {
    prune_checkpoints(files_, options_.directory, options_.retention, options_.best, options_.pinned());
  } catch (const std::exception& error) {
    outcome.warning = error.what();
  }
  for (const auto& part : parts_) outcome.bytes += static_cast<std::int64_t>(part.bytes);
  outcome.seconds = seconds_since(task.start);
  return outcome;
}

void CheckpointWriter::commit(const Task& task, const std::vector<WriteReport>& reports, const std::string& directory) {
  write_whole(files_, directory + "/manifest.json", to_text(make_manifest(task.progress, tensors_, parts_, reports)));
  files_.sync_directory(directory);
  if (!task.best) return;
  const std::string name = checkpoint_name(task.progress.step);
  write_best(files_, options_.directory, name);
  options_.best = name;
}

}  // namespace lockstep::checkpoint
