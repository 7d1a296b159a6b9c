// Ranks as processes under MPI: messages and the inexact all-reduce go through MPI, on the communication thread.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>

#include "comm/transport/cores.hpp"
#include "comm/transport/mpi_session.hpp"
#include "comm/transport/mpi_thread.hpp"
#include "comm/transport/point_to_point.hpp"
#include "comm/transport/topology.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kPieceBytes = std::size_t{1} << 30;  ///< because MPI counts are ints
constexpr milliseconds kPatience{60'000};                  ///< for the other ranks to end, if there was no error
constexpr milliseconds kPatienceAfterError{1'000};

template <class Start>
void in_pieces(std::size_t size, const Start& start) {
  for (std::size_t at = 0; at == 0 || at < size; at += kPieceBytes) {
    start(at, static_cast<int>(std::min(kPieceBytes, size - at)));
  }
}

void check_start(int code, const char* call) {
  if (code != MPI_SUCCESS) throw Error(ExitCode::infrastructure, fmt::format("{} failed with code {}", call, code));
}

class MpiTransfer final : public Transfer {
 public:
  MpiTransfer(MpiThread& mpi, const Topology& topology, int rank, FlightRecorder& recorder, int peer,
              std::shared_ptr<MpiOperation> operation)
      : mpi_(mpi),
        topology_(topology),
        rank_(rank),
        recorder_(recorder),
        peer_(peer),
        operation_(std::move(operation)) {}
  ~MpiTransfer() override {
    if (!operation_->settled()) mpi_.freeze();  // its buffer is about to be freed: an error is being unwound
  }
  MpiTransfer(const MpiTransfer&) = delete;
  MpiTransfer& operator=(const MpiTransfer&) = delete;
  [[nodiscard]] bool done() override { return operation_->done(); }
  void wait(const Operation& operation) override {
    Wait wait(topology_, rank_, peer_, operation);
    while (!operation_->wait_until(wait.next_check())) {
      mpi_.check();
      recorder_.waits_for(peer_, operation.name);
      wait.check();
    }
    if (!operation_->done()) mpi_.check();
  }

 private:
  MpiThread& mpi_;
  const Topology& topology_;
  int rank_;
  FlightRecorder& recorder_;
  int peer_;
  std::shared_ptr<MpiOperation> operation_;
};

class MpiCommunicator final : public PointToPointCommunicator, public SharesCores {
 public:
  MpiCommunicator() : rank_(mpi_->rank()), size_(mpi_->size()) {
    topology_.host_of.assign(size(), 0);
    topology_.host_names = {host_identity()};
    if (size() > 1) find_peers();
  }
  MpiCommunicator(MpiCommunicator& all, const std::vector<int>& ranks)
      : cores_(all.cores_), mpi_(all.mpi_), is_group_(true), size_(ranks.size()) {
    std::vector<std::string> hosts;
    for (const int rank : ranks) hosts.push_back(all.topology_.host_name(rank));
    topology_ = make_topology(hosts);
    rank_ = std::find(ranks.begin(), ranks.end(), all.rank()) - ranks.begin();
    LOCKSTEP_CHECK(rank_ < size_ && !all.is_group_, "a group is made of the job's ranks, by those in it");
    make_communicator(ranks);
  }
  ~MpiCommunicator() override {
    // A group's MPI communicator is kept until MPI ends: freeing it is collective over its ranks.
    if (is_group_) return;
    mpi_->close(std::uncaught_exceptions() > exceptions_ ? kPatienceAfterError : kPatience);
  }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const Topology& topology() const override { return topology_; }
  int cores() const override { return cores_; }
  std::unique_ptr<Transfer> send(std::span<const std::byte> bytes, int to, int tag) override {
    bytes_ += bytes.size();
    ++messages_;
    return post("send", to, bytes.size(), {}, [=, this](std::vector<MPI_Request>& requests) {
      in_pieces(bytes.size(), [&](std::size_t at, int count) {
        requests.push_back(MPI_REQUEST_NULL);
        check_start(MPI_Isend(bytes.data() + at, count, MPI_BYTE, to, tag, communicator_, &requests.back()),
                    "MPI_Isend");
      });
    });
  }
  std::unique_ptr<Transfer> receive(std::span<std::byte> bytes, int from, int tag,
                                    std::function<void()> notify) override {
    return post("receive", from, bytes.size(), std::move(notify), [=, this](std::vector<MPI_Request>& requests) {
      in_pieces(bytes.size(), [&](std::size_t at, int count) {
        requests.push_back(MPI_REQUEST_NULL);
        check_start(MPI_Irecv(bytes.data() + at, count, MPI_BYTE, from, tag, communicator_, &requests.back()),
                    "MPI_Irecv");
      });
    });
  }
  void check_peers() override { mpi_->check(); }
  void all_reduce_sum(std::span<float> values, const Operation& operation) override {
    bytes_ += values.size_bytes();
    ++messages_;
    post("all_reduce", -1, values.size_bytes(), {}, [=, this](std::vector<MPI_Request>& requests) {
      in_pieces(values.size_bytes(), [&](std::size_t at, int count) {
        requests.push_back(MPI_REQUEST_NULL);
        check_start(
            MPI_Iallreduce(MPI_IN_PLACE, values.data() + at / sizeof(float), count / static_cast<int>(sizeof(float)),
                           MPI_FLOAT, MPI_SUM, communicator_, &requests.back()),
            "MPI_Iallreduce");
      });
    })->wait(operation);
  }
  TrafficCounters traffic() const override { return {0, bytes_, messages_}; }
  [[noreturn]] void abort(int exit_code) override { mpi_->abort(exit_code); }

 private:
  std::unique_ptr<Transfer> post(const char* kind, int peer, std::size_t bytes, std::function<void()> notify,
                                 std::function<void(std::vector<MPI_Request>&)> start) {
    auto operation = std::make_shared<MpiOperation>();
    operation->recorder = recorder_;
    operation->number = recorder_->enqueue(kind, peer, bytes);
    operation->start = std::move(start);
    operation->notify = std::move(notify);
    mpi_->post(operation);
    return std::make_unique<MpiTransfer>(*mpi_, topology_, rank_, *recorder_, peer, std::move(operation));
  }

  // Blocks the communication thread until all of `ranks` call it; MPI has no non-blocking version.
  void make_communicator(const std::vector<int>& ranks) {
    post("group", -1, 0, {}, [this, ranks](std::vector<MPI_Request>& /*none*/) {
      MPI_Group all = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
      check_start(MPI_Comm_group(MPI_COMM_WORLD, &all), "MPI_Comm_group");
      check_start(MPI_Group_incl(all, size_, ranks.data(), &group), "MPI_Group_incl");
      check_start(MPI_Comm_create_group(MPI_COMM_WORLD, group, 0, &communicator_), "MPI_Comm_create_group");
      check_start(MPI_Group_free(&group), "MPI_Group_free");
      check_start(MPI_Group_free(&all), "MPI_Group_free");
    })->wait({"start of a group", 0});
  }

  // Which ranks share this rank's host, and its cores.
  void find_peers() {
    struct Place {
      std::array<char, 256> host{};
      device::CoreLimits cores;
    } mine{{}, device::core_limits()};
    const std::string name = host_identity();
    std::copy_n(name.begin(), std::min(name.size(), mine.host.size() - 1), mine.host.begin());
    std::vector<Place> all(size());
    all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), {"start", 0});
    std::vector<std::string> names;
    std::vector<device::CoreLimits> cores;
    for (const Place& place : all) {
      names.emplace_back(place.host.data());
      cores.push_back(place.cores);
    }
    topology_ = make_topology(names);
    cores_ = share_cores(cores, topology_.host_of)[rank()];
  }

  int exceptions_ = std::uncaught_exceptions();
  Topology topology_;
  int cores_ = device::available_cores();  ///< this rank's share of its host's
  std::atomic<std::uint64_t> bytes_{0}, messages_{0};
  std::shared_ptr<MpiThread> mpi_ = std::make_shared<MpiThread>();
  bool is_group_ = false;
  int rank_ = 0, size_ = 1;
  MPI_Comm communicator_ = MPI_COMM_WORLD;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator() {
  return std::make_unique<MpiCommunicator>();
}

std::unique_ptr<Communicator> make_mpi_group(Communicator& all, const std::vector<int>& ranks) {
  auto* const of_mpi = dynamic_cast<MpiCommunicator*>(&all);
  LOCKSTEP_CHECK(of_mpi != nullptr, "ranks on several hosts speak MPI");
  return std::make_unique<MpiCommunicator>(*of_mpi, ranks);
}

}  // namespace lockstep::comm
