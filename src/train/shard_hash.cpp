#include "train/shard_hash.hpp"

#include <memory>
#include <vector>

#include "core/digest.hpp"

namespace lockstep::train {

namespace {

constexpr std::int64_t kBucketBytes = std::int64_t{1} << 30;

exec::TensorBlock first_values(const Graph& graph, const std::vector<ValueId>& ids, std::uint64_t seed) {
  exec::TensorBlock block(graph, ids);
  for (std::size_t i = 0; i < block.size(); ++i) {
    exec::initialize(graph.at(ids[i]).initializer, seed, block.name(i), block.at(i));
  }
  return block;
}

}  // namespace

std::string hash_of_shard(exec::Executor& executor, const Graph& graph, const exec::Device& device, std::uint64_t seed,
                          InputSource& source, float loss_scale) {
  const auto buckets = exec::gradient_buckets(executor.program(), kBucketBytes, 1);
  const auto alone = make_single_communicator();
  const auto reducer = device.make_reducer(*alone, buckets, {});
  const auto parameters = first_values(graph, graph.parameters, seed);
  const auto states = first_values(graph, graph.states, seed);
  executor.use({parameters, states});
  const std::vector<int> shards = {0};
  reducer->begin_step(0, comm::place_shards(comm::equal_counts(1, 1)));
  const double loss = executor.train({0, shards, loss_scale}, source, buckets, *reducer).at(0).loss;
  reducer->finish();
  Sha256 hash;
  hash.add(std::as_bytes(std::span(&loss, 1)));
  for (std::size_t b = 0; b < buckets.buckets.size(); ++b) {
    const std::vector<float> sums = reducer->fetch(static_cast<int>(b));
    const auto& bucket = buckets.buckets[b];
    for (auto i = static_cast<std::size_t>(bucket.first_slot); i < static_cast<std::size_t>(bucket.last_slot); ++i) {
      const auto first = static_cast<std::size_t>(buckets.slots[i].offset);  // the gaps between slots are left out
      const auto elements = static_cast<std::size_t>(executor.program().slots[i].elements);
      hash.add(std::as_bytes(std::span(sums).subspan(first, elements)));
    }
  }
  return hash.hex().substr(0, 16);
}

}  // namespace lockstep::train
