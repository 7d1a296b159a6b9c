#include "comm/reduce/gpu_streamed_sums.hpp"

#include <algorithm>
#include <utility>

#include "comm/reduce/gpu_rounds.hpp"
#include "core/round_up.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

GpuStreamedSums::Plan::Plan(const GradientBuckets& all, const MicroBatchAssignment& assignment, const Hosts& hosts,
                            int rank)
    : alone(hosts.count() == 1) {
  LOCKSTEP_CHECK(!assignment.waves.empty(), "streamed gradients on GPUs come in waves");
  const Tree tree(all.micro_batches);
  of_owner = plan_of_host_sums(tree, plan_sums(tree, assignment, hosts, rank), rank);
  std::vector<TreeNode> subtrees;
  for (const HostSum& sum : of_owner.host_sums) subtrees.push_back(sum.node);
  sums = plan_waves(tree, subtrees, leaves_of_waves(assignment, hosts.ranks(hosts.host_of(rank))));
  const std::vector<BucketPlan> plans = plan_buckets(all, hosts, rank);
  for (const BucketPlan& plan : plans) {
    Bucket& bucket = buckets.emplace_back();
    for (const PlannedSlice& slice : plan.slices) {
      if (!plan.scattered) continue;
      if (slice.leader != rank) {
        bucket.given.push_back(slice);
      } else {
        bucket.handled.push_back({slice.owner, slice.first, slice.size, kept_elements});
        kept_elements += whole_lines(slice.size);
      }
    }
  }
}

std::int64_t GpuStreamedSums::Plan::receive_elements(int rank) const {
  std::int64_t leaves = 0, most = 0;
  for (const WaveSums::Wave& wave : sums.waves) {
    leaves = std::max<std::int64_t>(leaves, std::count_if(wave.leaves.begin(), wave.leaves.end(),
                                                          [&](const auto& leaf) { return leaf.rank != rank; }));
  }
  for (const Bucket& bucket : buckets) {
    std::int64_t handled = 0, others = 0;
    for (const Slice& slice : bucket.handled) {
      handled += slice.size;
      if (slice.owner == rank) others = slice.size * std::ssize(of_owner.others);
    }
    most = std::max({most, handled * leaves, others});
  }
  return most;
}

namespace {

std::vector<int> numbers_of_streamed(const GradientBuckets& buckets) {
  std::vector<int> numbers;
  int next = 0;
  for (const auto& bucket : buckets.buckets) numbers.push_back(bucket.scattered ? next++ : -1);
  return numbers;
}

}  // namespace

GpuStreamedSums::GpuStreamedSums(device::Gpu& gpu, Stream stream, const GradientBuckets& buckets, const Hosts& hosts,
                                 int rank, const ReducerOptions& options)
    : gpu_(gpu),
      stream_(stream),
      buckets_(buckets),
      hosts_(hosts),
      rank_(rank),
      numbers_(numbers_of_streamed(buckets)),
      layout_(ring_layout(buckets, options.open_elements, options.ahead_elements)),
      workers_(options.workers) {
  for (std::size_t i = 0; i < layout_.offsets.size(); ++i) exchanged_.push_back(gpu.make_event());
}

void GpuStreamedSums::use(const MicroBatchAssignment& assignment) {
  if (!rings_) rings_ = std::make_unique<const GpuRings>(gpu_, stream_, layout_, workers_);
  plan_ = std::make_unique<const Plan>(buckets_, assignment, hosts_, rank_);
  leaves_.assign(assignment.waves.size(), {-1, 0, -1});
  own_leaves_.assign(plan_->sums.waves.size(), 0);
  std::vector<int> last_wave(workers_, -1);  // by ring
  for (std::size_t w = 0; w < plan_->sums.waves.size(); ++w) {
    for (const WaveSums::Leaf& leaf : plan_->sums.waves[w].leaves) {
      if (leaf.rank != rank_) continue;
      const std::size_t ring = leaf.place;
      LOCKSTEP_CHECK(ring < last_wave.size(), "a worker has one micro-batch of a wave");
      const int wave = w;
      leaves_[leaf.micro_batch] = {wave, leaf.place, std::exchange(last_wave[ring], wave)};
      ++own_leaves_[w];
    }
  }
  while (std::ssize(kept_) < plan_->kept()) {
    kept_.emplace_back(gpu_, plan_->kept_elements * sizeof(float));
  }
}

std::int64_t GpuStreamedSums::elements() const {
  return std::ssize(kept_) * plan_->kept_elements + workers_ * layout_.elements;
}

const GpuStreamedSums::OwnLeaf& GpuStreamedSums::leaf_of(int micro_batch) const {
  const OwnLeaf& leaf = leaves_.at(micro_batch);
  LOCKSTEP_CHECK(leaf.wave >= 0, "a rank may only fill its own micro-batches");
  return leaf;
}

std::optional<GpuStreamedSums::Exchange> GpuStreamedSums::before(int micro_batch, int bucket) const {
  const OwnLeaf& leaf = leaf_of(micro_batch);
  const std::size_t number = number_of(bucket);
  const bool in_wave = layout_.earlier[number] >= 0;
  const int wave = in_wave ? leaf.wave : leaf.earlier_wave;
  if (wave < 0) return std::nullopt;
  const int other = in_wave ? layout_.earlier[number] : layout_.same[number];
  return Exchange{wave, static_cast<int>(std::find(numbers_.begin(), numbers_.end(), other) - numbers_.begin())};
}

GradientBuffer GpuStreamedSums::buffer(int micro_batch, int bucket) const {
  GradientBuffer buffer = rings_->buffer(leaf_of(micro_batch).ring, number_of(bucket));
  if (before(micro_batch, bucket)) buffer.free = exchanged(before(micro_batch, bucket)->bucket);
  return buffer;
}

float* GpuStreamedSums::kept(int number, const Plan::Slice& slice, float* result) const {
  if (plan_->alone && number == 0) return result;
  return kept_[plan_->alone ? number - 1 : number].as<float>() + slice.kept_at;
}

/// Where the leaves of a wave are: by handled slice and leaf.
struct GpuStreamedSums::Arrived {
  std::vector<std::vector<float*>> of_slice;
};

// Between two ranks, by slice and then by place, on both sides.
GpuStreamedSums::Arrived GpuStreamedSums::exchange_leaves(Exchange exchange, GpuTransport& transport, float* received) {
  const Plan::Bucket& bucket = plan_->buckets[exchange.bucket];
  const auto& leaves = plan_->sums.waves[exchange.wave].leaves;
  const auto own = [&](const WaveSums::Leaf& leaf) { return rings_->buffer(leaf.place, number_of(exchange.bucket)); };
  std::vector<GpuTransport::Message> sends, receives;
  for (const WaveSums::Leaf& leaf : leaves) {
    if (leaf.rank == rank_) gpu_.wait(stream_, own(leaf).written);
  }
  for (const PlannedSlice& slice : bucket.given) {
    for (const WaveSums::Leaf& leaf : leaves) {
      if (leaf.rank == rank_) sends.push_back({slice.leader, own(leaf).memory + slice.first, slice.size});
    }
  }
  Arrived arrived;
  for (const Plan::Slice& slice : bucket.handled) {
    auto& places = arrived.of_slice.emplace_back();
    for (const WaveSums::Leaf& leaf : leaves) {
      if (leaf.rank == rank_) {
        places.push_back(own(leaf).memory + slice.first);
      } else {
        receives.push_back({leaf.rank, std::exchange(received, received + slice.size), slice.size});
        places.push_back(receives.back().memory);
      }
    }
  }
  transport.send_receive(sends, receives, stream_);
  return arrived;
}

void GpuStreamedSums::enqueue(Exchange exchange, GpuTransport& transport, float* received, float* result) {
  const Arrived arrived = exchange_leaves(exchange, transport, received);
  const Plan::Bucket& bucket = plan_->buckets[exchange.bucket];
  for (std::size_t h = 0; h < bucket.handled.size(); ++h) {
    const Plan::Slice& slice = bucket.handled[h];
    const auto at = [&](const WaveSums::Operand& operand) {
      return operand.kept ? kept(operand.number, slice, result) : arrived.of_slice[h][operand.number];
    };
    for (const WaveSums::Step& step : plan_->sums.waves[exchange.wave].steps) {
      if (step.adds) {
        gpu_.add(stream_, at(step.left), at(step.right), at(step.out), slice.size);
      } else {
        gpu_.copy(stream_, reinterpret_cast<std::byte*>(at(step.out)),
                  reinterpret_cast<const std::byte*>(at(step.left)), slice.size * sizeof(float));
      }
    }
  }
  gpu_.record(exchanged(exchange.bucket), stream_);
  if (exchange.wave + 1 == waves() && !plan_->alone) finish(exchange.bucket, transport, received, result);
}

// Messages as planned_sends() and planned_receives() have them.
void GpuStreamedSums::finish(int bucket_number, GpuTransport& transport, float* received, float* result) {
  const Plan::Bucket& bucket = plan_->buckets[bucket_number];
  const SumPlan& sums = plan_->of_owner;
  std::vector<GpuTransport::Message> sends, receives;
  std::vector<float*> operands;
  std::int64_t own = 0;
  for (const Plan::Slice& slice : bucket.handled) {
    for (int sum = 0; sum < static_cast<int>(sums.host_sums.size()); ++sum) {
      float* const memory = kept(sum, slice, result);
      if (slice.owner == rank_) {
        operands.push_back(memory);
      } else {
        sends.push_back({slice.owner, memory, slice.size});
      }
    }
    if (slice.owner != rank_) continue;
    own = slice.size;
    for (const OtherSum& other : sums.others) {
      receives.push_back({other.leader, std::exchange(received, received + slice.size), slice.size});
    }
  }
  for (const GpuTransport::Message& message : receives) operands.push_back(message.memory);
  transport.send_receive(sends, receives, stream_);
  if (own > 0) add_in_order(gpu_, stream_, std::move(operands), sums.additions, own, result);
}

}  // namespace lockstep::comm
