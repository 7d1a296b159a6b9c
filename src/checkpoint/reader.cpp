#include "checkpoint/reader.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

#include "checkpoint/layout.hpp"
#include "comm/transport/work_together.hpp"
#include "lockstep/error.hpp"

namespace lockstep::checkpoint {

namespace {

constexpr std::size_t kMessageBytes = std::size_t{16} << 20;  ///< each has a deadline of its own

std::map<std::string, int> readers(const Manifest& manifest, const Topology& topology) {
  std::vector<std::size_t> bytes;
  for (const auto& [name, file] : manifest.files) bytes.push_back(file.bytes);
  const auto ranks = share_out(bytes, topology);
  std::map<std::string, int> reader_of;
  for (const auto& [name, file] : manifest.files) reader_of[name] = ranks[reader_of.size()];
  return reader_of;
}

}  // namespace

Operation CheckpointReader::operation(const Checkpoint& checkpoint) const {
  return {"checkpoint", static_cast<std::uint64_t>(checkpoint.manifest.progress.step), timeout_};
}

std::vector<std::string> CheckpointReader::read(const Checkpoint& checkpoint) {
  own_.clear();
  reader_of_ = readers(checkpoint.manifest, communicator_.topology());
  std::string fault;
  const auto damaged = comm::work_together(communicator_, operation(checkpoint), [&](comm::WorkProgress& progress) {
    for (const auto& [name, rank] : reader_of_) {
      if (rank != communicator_.rank()) continue;
      try {
        own_.emplace(name, read_part(checkpoint, name, [&] { progress.advance(); }));
      } catch (const Error& error) {
        if (error.code() != ExitCode::data) throw;
        fault = error.what();
        return true;
      }
    }
    return false;
  });
  std::vector<std::string> faults;
  for (std::size_t rank = 0; rank < damaged.size() && faults.size() < kMaxFaults; ++rank) {
    if (damaged[rank]) faults.push_back(reported_by(static_cast<int>(rank), fault, operation(checkpoint)));
  }
  return faults;
}

std::string CheckpointReader::reported_by(int rank, std::string text, const Operation& operation) const {
  std::uint64_t size = text.size();
  communicator_.broadcast(std::as_writable_bytes(std::span(&size, 1)), rank, operation);
  text.resize(size);
  communicator_.broadcast(std::as_writable_bytes(std::span(text)), rank, operation);
  return text;
}

void CheckpointReader::hand_out(std::string& bytes, int from, const Operation& operation) const {
  auto rest = std::as_writable_bytes(std::span(bytes));
  while (!rest.empty()) {
    const std::size_t next = std::min(rest.size(), kMessageBytes);
    communicator_.broadcast(rest.first(next), from, operation);
    rest = rest.subspan(next);
  }
}

void CheckpointReader::load(const Checkpoint& checkpoint, const Targets& targets) {
  for (const auto& [name, copies] : plan_copies(checkpoint, targets)) {
    const int from = reader_of_.at(name);
    SafetensorsFile file;
    if (from == communicator_.rank()) {
      file = std::move(own_.at(name));
      own_.erase(name);
    }
    if (communicator_.size() > 1) {
      std::string bytes =
          from == communicator_.rank() ? file.release() : std::string(checkpoint.manifest.files.at(name).bytes, '\0');
      hand_out(bytes, from, operation(checkpoint));
      file = SafetensorsFile::parse(std::move(bytes), checkpoint.path + "/" + name);
    }
    for (const auto& copy : copies) file.copy(copy.name, copy.shape, copy.to);
  }
}

}  // namespace lockstep::checkpoint
