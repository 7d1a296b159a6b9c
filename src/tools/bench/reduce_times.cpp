#include "tools/bench/reduce_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

#include "comm/reduce/all_reduce_gpu.hpp"
#include "comm/reduce/micro_batch_assignment.hpp"
#include "core/spans.hpp"
#include "lockstep/error.hpp"

namespace lockstep::bench {

namespace {

constexpr int kWarmUp = 2;
const Operation kTiming{"bench", 0};

/// A rank's reducer, and how a bench writes gradients and reads sums on the host or the GPU.
class BenchSide {
 public:
  BenchSide() = default;
  BenchSide(const BenchSide&) = delete;
  BenchSide& operator=(const BenchSide&) = delete;
  virtual ~BenchSide() = default;
  [[nodiscard]] virtual comm::GradientReducer& reducer() = 0;
  virtual void fill(const comm::GradientBuffer& buffer, std::int64_t elements) = 0;
  /// Returns when all sums are complete.
  virtual void finish() { reducer().finish(); }
  [[nodiscard]] virtual std::vector<float> sums(int bucket) = 0;
};

class HostSide final : public BenchSide {
 public:
  HostSide(Communicator& communicator, const comm::GradientBuckets& buckets, bool exact)
      : reducer_(comm::make_reducer(communicator, buckets, {.exact = exact})) {}
  comm::GradientReducer& reducer() override { return *reducer_; }
  void fill(const comm::GradientBuffer& buffer, std::int64_t elements) override { write_ones(buffer, elements); }
  std::vector<float> sums(int bucket) override {
    const auto sums = reducer_->reduced(bucket);
    return {sums.begin(), sums.end()};
  }

 private:
  std::unique_ptr<comm::GradientReducer> reducer_;
};

/// Ones in pinned memory, and a stream to copy them with.
class Ones {
 public:
  Ones(device::Gpu& gpu, std::int64_t elements)
      : gpu_(gpu),
        stream_(gpu.make_kernel_stream()),
        copied_(gpu.make_event()),
        pinned_(gpu, elements * sizeof(float)) {
    const std::vector<float> ones(elements, 1.0F);
    gpu.fill(pinned_.get(), reinterpret_cast<const std::byte*>(ones.data()), ones.size() * sizeof(float));
  }
  device::Gpu::Stream stream() const { return stream_; }
  void copy(float* device, std::int64_t elements) {
    gpu_.copy_in(stream_, reinterpret_cast<std::byte*>(device), pinned_.get(), elements * sizeof(float));
  }
  void wait() {
    gpu_.record(copied_, stream_);
    gpu_.wait(copied_);
  }

 private:
  device::Gpu& gpu_;
  device::Gpu::Stream stream_;
  device::Gpu::Event copied_;
  device::PinnedBlock pinned_;
};

std::unique_ptr<comm::GpuTransport> transport_of(Communicator& communicator, const comm::ReduceDevice& place) {
  return communicator.size() > 1 ? place.make_transport() : nullptr;
}

class GpuSide final : public BenchSide {
 public:
  GpuSide(Communicator& communicator, const comm::GradientBuckets& buckets, bool exact, const comm::ReduceDevice& place)
      : gpu_(*place.gpu),
        reducer_(communicator, buckets, {.exact = exact}, gpu_, transport_of(communicator, place)),
        ones_(gpu_, buckets.max_elements()) {}
  comm::GradientReducer& reducer() override { return reducer_; }
  void fill(const comm::GradientBuffer& buffer, std::int64_t elements) override {
    gpu_.wait(ones_.stream(), buffer.free);
    ones_.copy(buffer.memory, elements);
    gpu_.record(buffer.written, ones_.stream());
    ones_.wait();
  }
  void finish() override {
    reducer_.finish();
    gpu_.wait(reducer_.whole());
  }
  std::vector<float> sums(int bucket) override { return reducer_.fetch(bucket); }

 private:
  device::Gpu& gpu_;
  comm::GpuAllReduce reducer_;
  Ones ones_;
};

std::unique_ptr<BenchSide> make_side(Communicator& communicator, const comm::GradientBuckets& buckets, bool exact,
                                     const comm::ReduceDevice& place) {
  if (place.gpu == nullptr) return std::make_unique<HostSide>(communicator, buckets, exact);
  return std::make_unique<GpuSide>(communicator, buckets, exact, place);
}

/// For each round, the longest time of all ranks.
std::vector<double> slowest(Communicator& communicator, const std::vector<double>& mine) {
  const std::size_t ranks = communicator.size();
  std::vector<double> all(mine.size() * ranks), longest(mine);
  communicator.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), kTiming);
  for (std::size_t i = 0; i < all.size(); ++i) {
    double& of_round = longest[i % mine.size()];
    of_round = std::max(of_round, all[i]);
  }
  return longest;
}

std::uint64_t sum_over_ranks(Communicator& communicator, std::uint64_t mine) {
  std::vector<std::uint64_t> all(communicator.size());
  communicator.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), kTiming);
  return std::accumulate(all.begin(), all.end(), std::uint64_t{0});
}

/// In each round: `prepare`, a barrier, then `work`, whose time is measured.
std::vector<double> timed_rounds(Communicator& communicator, int rounds, const std::function<void(int)>& prepare,
                                 const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int round = 0; round < rounds + kWarmUp; ++round) {
    prepare(round);
    communicator.barrier(kTiming);
    const auto start = Clock::now();
    work();
    if (round >= kWarmUp) seconds.push_back(seconds_since(start));
  }
  return slowest(communicator, seconds);
}

ReduceTimes time_all_reduce_on_gpus(Communicator& communicator, std::int64_t elements, int rounds,
                                    const comm::ReduceDevice& place) {
  device::Gpu& gpu = *place.gpu;
  gpu.make_current();
  const std::size_t bytes = elements * sizeof(float);
  const auto transport = transport_of(communicator, place);
  Ones ones(gpu, elements);
  const device::GpuBlock values(gpu, bytes);
  ReduceTimes times;
  times.seconds = timed_rounds(
      communicator, rounds,
      [&](int) {
        ones.copy(values.as<float>(), elements);
        ones.wait();
      },
      [&] {
        if (transport) transport->all_reduce_sum(values.as<float>(), elements, ones.stream());
        ones.wait();
      });
  const device::PinnedBlock found(gpu, bytes);
  gpu.copy_out(ones.stream(), found.get(), values.get(), bytes);
  ones.wait();
  gpu.reads(found.get(), bytes);
  expect_sum({found.as<float>(), static_cast<std::size_t>(elements)}, communicator.size());
  return times;
}

}  // namespace

comm::GradientBuckets buckets_of(const ReduceLoad& load, int ranks) {
  comm::GradientBuckets all;
  all.micro_batches = load.micro_batches_a_rank * ranks;
  all.spread_owners = true;
  for (std::int64_t at = 0; at < load.elements; at += load.elements_a_bucket) {
    const std::int64_t size = std::min(load.elements_a_bucket, load.elements - at);
    all.buckets.emplace_back().append(size);
  }
  return all;
}

void write_ones(const comm::GradientBuffer& buffer, std::int64_t elements) {
  for (float& value : std::span(buffer.memory, static_cast<std::size_t>(elements))) value = buffer.add ? value + 1 : 1;
}

void expect_sum(std::span<const float> found, float wanted) {
  const auto wrong = std::find_if(found.begin(), found.end(), [&](float value) { return value != wanted; });
  if (wrong == found.end()) return;
  throw Error(ExitCode::internal, fmt::format("the all-reduce adds wrongly: element {} of {}: expected {}, found {}",
                                              wrong - found.begin(), found.size(), wanted, *wrong));
}

ReduceTimes time_reduce(Communicator& communicator, const ReduceLoad& load, bool exact, int rounds,
                        const comm::ReduceDevice& place) {
  const comm::GradientBuckets all = buckets_of(load, communicator.size());
  const auto side = make_side(communicator, all, exact, place);
  const comm::MicroBatchAssignment assignment = comm::place_micro_batches(
      comm::equal_counts(all.micro_batches, communicator.size()), {}, communicator.topology().host_of);
  const auto& mine = assignment.micro_batches_of_rank[communicator.rank()];
  const int buckets = all.count();
  const auto ready = [&](int micro_batch) {
    for (int b = 0; b < buckets; ++b) side->reducer().ready(micro_batch, b);
  };
  const auto compute = [&](int round) {
    side->reducer().begin_step(round, assignment);
    for (const int micro_batch : mine) {
      for (int b = 0; b < buckets; ++b) {
        side->fill(side->reducer().buffer(micro_batch, b), all.at(b).elements);
      }
      if (micro_batch != mine.back()) ready(micro_batch);
    }
  };
  ReduceTimes times;
  times.seconds = timed_rounds(communicator, rounds, compute, [&] {
    ready(mine.back());
    side->finish();
  });
  for (int b = 0; b < buckets; ++b) expect_sum(side->sums(b), all.micro_batches);
  const auto sent = side->reducer().statistics();
  const std::uint64_t all_rounds = rounds + kWarmUp;
  times.shared_memory_bytes = sum_over_ranks(communicator, sent.shared_memory_bytes) / all_rounds;
  times.network_bytes = sum_over_ranks(communicator, sent.network_bytes) / all_rounds;
  return times;
}

ReduceTimes time_all_reduce(Communicator& communicator, std::int64_t elements, int rounds,
                            const comm::ReduceDevice& place) {
  if (place.gpu != nullptr) return time_all_reduce_on_gpus(communicator, elements, rounds, place);
  std::vector<float> values(elements);
  ReduceTimes times;
  times.seconds = timed_rounds(
      communicator, rounds, [&](int) { std::fill(values.begin(), values.end(), 1.0F); },
      [&] { communicator.all_reduce_sum(values, kTiming); });
  expect_sum(values, communicator.size());
  return times;
}

double bus_bandwidth(double bytes, int ranks, double seconds) {
  return ranks == 1 ? bytes / seconds : bytes * 2 * (ranks - 1) / ranks / seconds;
}

}  // namespace lockstep::bench
