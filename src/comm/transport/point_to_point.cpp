#include "comm/transport/point_to_point.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

constexpr int kBarrier = kFirstInternalTag, kBroadcast = kFirstInternalTag + 1, kAllGather = kFirstInternalTag + 2,
              kReduce = kFirstInternalTag + 3;

}  // namespace

// A binomial tree.
void broadcast_in_group(Communicator& communicator, std::span<const int> group, std::span<std::byte> bytes, int tag,
                        const Operation& operation) {
  const auto found = std::find(group.begin(), group.end(), communicator.rank());
  LOCKSTEP_CHECK(found != group.end(), "a broadcast is called by the ranks that it is for");
  const std::size_t place = found - group.begin();
  std::size_t distance = 1;
  while (distance < group.size() && (place & distance) == 0) distance *= 2;
  if (place != 0) communicator.receive(bytes, group[place - distance], tag)->wait(operation);

  std::vector<std::unique_ptr<Transfer>> sent;
  for (distance /= 2; distance >= 1; distance /= 2) {
    if (place + distance < group.size()) sent.push_back(communicator.send(bytes, group[place + distance], tag));
  }
  for (const auto& transfer : sent) transfer->wait(operation);
}

std::string broadcast_text(Communicator& communicator, std::string text, int root, const Operation& operation) {
  std::uint64_t size = text.size();
  communicator.broadcast(std::as_writable_bytes(std::span(&size, 1)), root, operation);
  text.resize(size);
  communicator.broadcast(std::as_writable_bytes(std::span(text)), root, operation);
  return text;
}

void all_reduce_sum(Communicator& communicator, std::span<std::int64_t> numbers, const Operation& operation) {
  const int rank = communicator.rank(), ranks = communicator.size();
  std::vector<std::int64_t> other(ranks > 1 ? numbers.size() : 0);
  int distance = 1;
  for (; distance < ranks && (rank & distance) == 0; distance *= 2) {
    if (rank + distance >= ranks) continue;
    communicator.receive(std::as_writable_bytes(std::span(other)), rank + distance, kReduce)->wait(operation);
    std::transform(numbers.begin(), numbers.end(), other.begin(), numbers.begin(), std::plus<>());
  }
  if (rank != 0) communicator.send(std::as_bytes(numbers), rank - distance, kReduce)->wait(operation);
  communicator.broadcast(std::as_writable_bytes(numbers), 0, operation);
}

// Dissemination: in round i, every rank hears of the 2^i ranks before it.
void PointToPointCommunicator::barrier(const Operation& operation) {
  const std::array<std::byte, 1> token{};
  std::array<std::byte, 1> heard{};
  for (int distance = 1; distance < size(); distance *= 2) {
    const auto sent = send(token, (rank() + distance) % size(), kBarrier);
    receive(heard, (rank() - distance + size()) % size(), kBarrier)->wait(operation);
    sent->wait(operation);
  }
}

void PointToPointCommunicator::broadcast(std::span<std::byte> bytes, int root, const Operation& operation) {
  LOCKSTEP_CHECK(root >= 0 && root < size(), "broadcast from a rank of the job");
  std::vector<int> ranks(size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::rotate(ranks.begin(), ranks.begin() + root, ranks.end());
  broadcast_in_group(*this, ranks, bytes, kBroadcast, operation);
}

void PointToPointCommunicator::all_gather(std::span<const std::byte> in, std::span<std::byte> out,
                                          const Operation& operation) {
  LOCKSTEP_CHECK(out.size() == in.size() * static_cast<std::size_t>(size()), "all_gather: one block a rank");
  const std::size_t block = in.size(), ranks = size();
  std::vector<std::byte> held(out.size());  // blocks of rank(), rank() + 1, ... as far as they have been received
  std::copy(in.begin(), in.end(), held.begin());
  for (std::size_t have = 1; have < ranks; have *= 2) {
    const std::size_t more = std::min(have, ranks - have);
    const int distance = have;
    const auto received =
        receive(std::span(held).subspan(have * block, more * block), (rank() + distance) % size(), kAllGather);
    const auto sent = send(std::span(held).first(more * block), (rank() - distance + size()) % size(), kAllGather);
    received->wait(operation);
    sent->wait(operation);
  }
  const auto wrapped = held.end() - (rank() * block);
  std::copy(wrapped, held.end(), out.begin());
  std::copy(held.begin(), wrapped, out.begin() + (rank() * block));
}

void PointToPointCommunicator::all_reduce_sum(std::span<float> values, const Operation& operation) {
  if (rank() != 0) {
    send(std::as_bytes(values), 0, kReduce)->wait(operation);
  } else {
    std::vector<float> other(values.size());
    for (int r = 1; r < size(); ++r) {
      receive(std::as_writable_bytes(std::span(other)), r, kReduce)->wait(operation);
      for (std::size_t i = 0; i < other.size(); ++i) values[i] += other[i];
    }
  }
  broadcast(std::as_writable_bytes(values), 0, operation);
}

}  // namespace lockstep::comm
