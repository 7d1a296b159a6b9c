#include "comm/reduce/rank_reducer.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "comm/transport/recorded.hpp"
#include "core/spans.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

void check_assignment(const MicroBatchAssignment& assignment, int micro_batches, int ranks) {
  LOCKSTEP_CHECK(static_cast<int>(assignment.micro_batches_of_rank.size()) == ranks,
                 "an assignment has a list for each rank");
  std::vector<int> seen(micro_batches, 0);
  for (const auto& list : assignment.micro_batches_of_rank) {
    for (const int micro_batch : list) ++seen.at(micro_batch);
  }
  LOCKSTEP_CHECK(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }), "each micro-batch on one rank");
}

}  // namespace

RankReducer::RankReducer(Communicator& communicator, GradientBuckets buckets, ReducerOptions options,
                         std::unique_ptr<BufferMemory> memory)
    : communicator_(communicator),
      recorder_(recorder_of(communicator) ? recorder_of(communicator) : std::make_shared<FlightRecorder>()),
      buckets_(std::move(buckets)),
      options_(options),
      tree_(buckets_.micro_batches),
      hosts_(communicator.topology()),
      local_rank_(hosts_.local_rank(communicator.rank())),
      buffer_memory_(std::move(memory)),
      sums_(buckets_, *buffer_memory_),
      scalar_gather_(communicator, hosts_, *recorder_) {}

void RankReducer::measure(const MicroBatchAssignment& assignment) {
  max_micro_batches_ = 0;
  for (const auto& micro_batches : assignment.micro_batches_of_rank)
    max_micro_batches_ = std::max(max_micro_batches_, static_cast<int>(micro_batches.size()));
}

void RankReducer::use(MergePlan plan, const MicroBatchAssignment& assignment) {
  const std::array own = {rank()};
  const int waiting =
      AccumulationBuffers::most_waiting(plan, waves_of(expected_order(assignment, own), options_.workers));
  sums_.use(std::move(plan));
  for (int b = 0; b < bucket_count(); ++b) {
    if (!streams(b)) sums_.reserve(b, waiting);
  }
}

namespace {

HostBlock doorbell_block() {
  return {.bytes = sizeof(Doorbell), .prepare = [](std::byte* block) { new (block) Doorbell(); }, .layout = "doorbell"};
}

}  // namespace

void RankReducer::map_doorbells() {
  if (!doorbell_memory_) keep_doorbells(map_host_memory(communicator_, doorbell_block(), operation("shared memory")));
}

void RankReducer::keep_doorbells(std::unique_ptr<HostMemory> memory) {
  doorbell_memory_ = std::move(memory);
  const std::size_t beside = hosts_.ranks(hosts_.host_of(rank())).size();
  for (std::size_t r = 0; r < beside; ++r)
    doorbells_.push_back(reinterpret_cast<Doorbell*>(doorbell_memory_->block(r)));
}

void RankReducer::map_regions(int partials, const std::vector<RegionShape::Bucket>& buckets) {
  if (!needs_room(partials)) return;
  room_ = std::max(room_, partials);
  micro_batch_room_ = std::min(2 * max_micro_batches_, buckets_.micro_batches);  // twice the need: so that not every
                                                                                 // micro-batch that moves maps anew
  const auto scalars = [&](int micro_batches, int of_ranks) {
    return static_cast<std::size_t>(micro_batches) * static_cast<std::size_t>(options_.scalars_per_micro_batch) +
           static_cast<std::size_t>(of_ranks) * options_.scalars_per_rank;
  };
  const RegionShape shape{buckets, room_, scalars(micro_batch_room_, 1),
                          hosts_.count() == 1 ? 0 : scalars(buckets_.micro_batches, ranks())};
  const bool is_first = local_rank_ == 0;
  regions_.clear();
  const HostBlock block{.bytes = Region::bytes(shape, is_first),
                        .prepare = [&](std::byte* at) { Region::construct(at, shape, is_first); },
                        .layout = Region::layout(shape)};
  if (doorbell_memory_) {
    remap_host_memory(memory_, communicator_, block, operation("shared memory"));
  } else {
    auto mapped = map_host_memories(communicator_, std::array{doorbell_block(), block}, operation("shared memory"));
    keep_doorbells(std::move(mapped[0]));
    memory_ = std::move(mapped[1]);
  }
  for (std::size_t r = 0; r < doorbells_.size(); ++r) regions_.emplace_back(memory_->block(r), shape, *doorbells_[r]);
}

void RankReducer::enter_step(std::uint64_t step, const MicroBatchAssignment& assignment) {
  step_ = step;
  recorder_->set_step(step);
  if (assignment == assignment_) return;
  check_assignment(assignment, buckets_.micro_batches, ranks());
  assignment_ = assignment;
}

Scalars RankReducer::scalars(const OwnScalars& own) {
  LOCKSTEP_CHECK(own.per_micro_batch <= options_.scalars_per_micro_batch,
                 "more scalars a micro-batch than ReducerOptions says");
  LOCKSTEP_CHECK(std::ssize(own.of_rank) <= options_.scalars_per_rank, "more scalars a rank than ReducerOptions says");
  const auto start = Clock::now();
  const ActivityScope activity(recorder_.get(), "scalars", step_);
  Scalars all = scalar_gather_.run(regions_, assignment_, own, operation("scalars"));
  scalar_seconds_ += seconds_since(start);
  return all;
}

std::unique_ptr<GradientReducer> make_reducer(Communicator& communicator, GradientBuckets buckets,
                                              ReducerOptions options) {
  return options.exact && communicator.size() > 1 ? make_cpu_all_reduce(communicator, std::move(buckets), options)
                                                  : make_library_all_reduce(communicator, std::move(buckets), options);
}

}  // namespace lockstep::comm
