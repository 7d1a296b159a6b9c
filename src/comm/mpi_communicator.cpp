// Ranks as processes under MPI: messages and the inexact all-reduce by MPI, through the communication thread.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>

#include "comm/mpi_session.hpp"
#include "comm/mpi_thread.hpp"
#include "comm/point_to_point.hpp"
#include "comm/topology.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kPieceBytes = std::size_t{1} << 30;  ///< MPI counts are ints
constexpr milliseconds kPatience{60'000};                  ///< for the others to end, when all is well
constexpr milliseconds kPatienceAfterError{1'000};
constexpr milliseconds kCheckInterval{100};

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
  MpiTransfer(MpiThread& mpi, const Topology& topology, FlightRecorder& recorder, int peer,
              std::shared_ptr<MpiOperation> operation)
      : mpi_(mpi), topology_(topology), recorder_(recorder), peer_(peer), operation_(std::move(operation)) {}
  ~MpiTransfer() override {
    if (!operation_->done()) mpi_.freeze();  // its buffer is going away: an error is being unwound
  }
  MpiTransfer(const MpiTransfer&) = delete;
  MpiTransfer& operator=(const MpiTransfer&) = delete;
  [[nodiscard]] bool done() override { return operation_->done(); }
  void wait(const Operation& operation) override {
    const auto start = Clock::now(), end = start + operation.timeout;
    while (!operation_->wait_until(std::min(end, Clock::now() + kCheckInterval))) {
      mpi_.check();
      recorder_.waits_for(peer_, operation.name);
      if (Clock::now() >= end) throw_deadline(topology_, mpi_.rank(), peer_, operation, seconds_since(start));
    }
  }

 private:
  MpiThread& mpi_;
  const Topology& topology_;
  FlightRecorder& recorder_;
  int peer_;
  std::shared_ptr<MpiOperation> operation_;
};

class MpiCommunicator final : public PointToPointCommunicator {
 public:
  MpiCommunicator() {
    topology_.host_of.assign(static_cast<std::size_t>(size()), 0);
    topology_.host_names = {host_identity()};
    if (size() > 1) topology_ = make_topology(gather_hosts());
  }
  ~MpiCommunicator() override {
    mpi_.close(std::uncaught_exceptions() > exceptions_ ? kPatienceAfterError : kPatience);
  }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  [[nodiscard]] int rank() const override { return mpi_.rank(); }
  [[nodiscard]] int size() const override { return mpi_.size(); }
  [[nodiscard]] const Topology& topology() const override { return topology_; }
  std::unique_ptr<Transfer> send(std::span<const std::byte> bytes, int to, int tag) override {
    bytes_ += bytes.size();
    ++messages_;
    return post("send", to, bytes.size(), {}, [=](std::vector<MPI_Request>& requests) {
      in_pieces(bytes.size(), [&](std::size_t at, int count) {
        requests.push_back(MPI_REQUEST_NULL);
        check_start(MPI_Isend(bytes.data() + at, count, MPI_BYTE, to, tag, MPI_COMM_WORLD, &requests.back()),
                    "MPI_Isend");
      });
    });
  }
  std::unique_ptr<Transfer> receive(std::span<std::byte> bytes, int from, int tag,
                                    std::function<void()> notify) override {
    return post("receive", from, bytes.size(), std::move(notify), [=](std::vector<MPI_Request>& requests) {
      in_pieces(bytes.size(), [&](std::size_t at, int count) {
        requests.push_back(MPI_REQUEST_NULL);
        check_start(MPI_Irecv(bytes.data() + at, count, MPI_BYTE, from, tag, MPI_COMM_WORLD, &requests.back()),
                    "MPI_Irecv");
      });
    });
  }
  void check_peers() override { mpi_.check(); }
  void all_reduce_sum(std::span<float> values, const Operation& operation) override {
    bytes_ += values.size_bytes();
    ++messages_;
    post("all_reduce", -1, values.size_bytes(), {}, [=](std::vector<MPI_Request>& requests) {
      in_pieces(values.size_bytes(), [&](std::size_t at, int count) {
        requests.push_back(MPI_REQUEST_NULL);
        check_start(
            MPI_Iallreduce(MPI_IN_PLACE, values.data() + at / sizeof(float), count / static_cast<int>(sizeof(float)),
                           MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests.back()),
            "MPI_Iallreduce");
      });
    })->wait(operation);
  }
  [[nodiscard]] TrafficCounters traffic() const override { return {0, bytes_, messages_}; }
  [[noreturn]] void abort(int exit_code) override { mpi_.abort(exit_code); }

 private:
  std::unique_ptr<Transfer> post(const char* kind, int peer, std::size_t bytes, std::function<void()> notify,
                                 std::function<void(std::vector<MPI_Request>&)> start) {
    auto operation = std::make_shared<MpiOperation>();
    operation->recorder = recorder_;
    operation->number = recorder_->enqueue(kind, peer, bytes);
    operation->start = std::move(start);
    operation->notify = std::move(notify);
    mpi_.post(operation);
    return std::make_unique<MpiTransfer>(mpi_, topology_, *recorder_, peer, std::move(operation));
  }

  std::vector<std::string> gather_hosts() {
    std::array<char, 256> mine{};
    const std::string name = host_identity();
    std::copy_n(name.begin(), std::min(name.size(), mine.size() - 1), mine.begin());
    std::vector<std::array<char, 256>> all(static_cast<std::size_t>(size()));
    all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), {"start", 0});
    std::vector<std::string> names;
    for (const auto& host : all) names.emplace_back(host.data());
    return names;
  }

  int exceptions_ = std::uncaught_exceptions();
  Topology topology_;
  std::atomic<std::uint64_t> bytes_{0}, messages_{0};
  MpiThread mpi_;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator() {
  return std::make_unique<MpiCommunicator>();
}

}  // namespace lockstep::comm
