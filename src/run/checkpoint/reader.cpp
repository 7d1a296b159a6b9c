#include "run/checkpoint/reader.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

#include "comm/transport/messages.hpp"
#include "comm/transport/point_to_point.hpp"
#include "comm/transport/work_together.hpp"
#include "lockstep/error.hpp"
#include "run/checkpoint/layout.hpp"

namespace lockstep::checkpoint {

namespace {

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
  const auto read_own = [&](comm::WorkProgress& progress) {
    for (const auto& [name, rank] : reader_of_) {
      if (rank != communicator_.rank()) continue;
      try {
        own_.emplace(name, read_part(checkpoint, name, [&] { progress.advance_or_stop(); }));
      } catch (const Error& error) {
        if (error.code() != ExitCode::data) throw;
        fault = error.what();
        return true;
      }
    }
    return false;
  };
  const auto damaged = comm::work_together(communicator_, operation(checkpoint), read_own, {.stop = stop_});
  std::vector<std::string> faults;
  for (std::size_t rank = 0; rank < damaged.size() && faults.size() < kMaxFaults; ++rank) {
    if (damaged[rank]) faults.push_back(comm::broadcast_text(communicator_, fault, rank, operation(checkpoint)));
  }
  return faults;
}

void CheckpointReader::hand_out(std::string& bytes, int from, const Operation& operation) const {
  comm::in_messages(std::as_writable_bytes(std::span(bytes)),
                    [&](auto message) { communicator_.broadcast(message, from, operation); });
}

// Handing out a file is collective, so the ranks agree on the list of files, and on whether any rank has a fault: that
// rank then throws its own, and the others, which would wait for files in vain, throw that of the first such rank.
std::vector<std::string> CheckpointReader::needed_files(const Checkpoint& checkpoint, const Copies& copies,
                                                        const std::string& fault) const {
  const auto& files = checkpoint.manifest.files;
  const std::size_t ranks = communicator_.size();
  std::string mine(1, fault.empty() ? '-' : 'x');
  for (const auto& [name, file] : files) mine += copies.contains(name) ? 'x' : '-';
  std::string all(mine.size() * ranks, '\0');
  communicator_.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                           operation(checkpoint));
  const auto first_rank = [&](std::size_t flag) {
    std::size_t rank = 0;
    while (rank < ranks && all[rank * mine.size() + flag] == '-') ++rank;
    return rank;
  };
  if (const std::size_t faulty = first_rank(0); faulty < ranks) {
    const std::string of_first = comm::broadcast_text(communicator_, fault, faulty, operation(checkpoint));
    throw Error(ExitCode::data, fault.empty() ? of_first : fault);
  }
  std::vector<std::string> needed;
  std::size_t flag = 0;
  for (const auto& [name, file] : files) {
    if (first_rank(++flag) < ranks) needed.push_back(name);
  }
  return needed;
}

void CheckpointReader::load(const Checkpoint& checkpoint, const Targets& targets) {
  Copies copies;
  std::string fault;
  try {
    copies = plan_copies(checkpoint, targets);
  } catch (const Error& error) {
    if (error.code() != ExitCode::data) throw;
    fault = error.what();
  }
  for (const auto& name : needed_files(checkpoint, copies, fault)) {
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
      if (!copies.contains(name)) continue;
      file = SafetensorsFile::parse(std::move(bytes), checkpoint.path + "/" + name);
    }
    for (const auto& copy : copies.at(name)) file.copy(copy.name, copy.shape, copy.to, copy.first);
  }
}

}  // namespace lockstep::checkpoint
