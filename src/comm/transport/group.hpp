// GroupCommunicator: some ranks of a communicator (those that have the same part of a model) as a communicator of their
// own, numbered from 0. Its messages go over the whole communicator, with the same tags: two ranks of a group must not
// use a tag for something else at the same time.
#pragma once

#include <memory>
#include <vector>

#include "comm/transport/point_to_point.hpp"

namespace lockstep::comm {

class GroupCommunicator final : public PointToPointCommunicator {
 public:
  /// `ranks`: of `all`, ascending; the caller is one of them. `all` must outlive it. No communication.
  GroupCommunicator(Communicator& all, std::vector<int> ranks);

  int rank() const override { return rank_; }
  int size() const override { return ranks_.size(); }
  const Topology& topology() const override { return topology_; }
  [[nodiscard]] std::unique_ptr<Transfer> send(std::span<const std::byte> bytes, int to, int tag) override {
    return all_.send(bytes, rank_of_all(to), tag);
  }
  [[nodiscard]] std::unique_ptr<Transfer> receive(std::span<std::byte> bytes, int from, int tag,
                                                  std::function<void()> notify) override {
    return all_.receive(bytes, rank_of_all(from), tag, std::move(notify));
  }
  void check_peers() override { all_.check_peers(); }
  /// Traffic of the whole communicator.
  TrafficCounters traffic() const override { return all_.traffic(); }
  [[noreturn]] void abort(int exit_code) override;
  std::shared_ptr<FlightRecorder> recorder() const override { return recorder_of(all_); }

  Communicator& all() const { return all_; }

 private:
  int rank_of_all(int rank) const { return ranks_.at(rank); }

  Communicator& all_;
  std::vector<int> ranks_;
  int rank_ = 0;
  Topology topology_;
};

}  // namespace lockstep::comm
