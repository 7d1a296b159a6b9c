// What happens to the other workers of a rank that computes a part of a model, if one of them fails.
#include <gtest/gtest.h>

#include <latch>
#include <memory>
#include <stdexcept>
#include <vector>

#include "core/input_source.hpp"
#include "core/spans.hpp"
#include "exec/part_nets.hpp"
#include "graph/cut.hpp"
#include "graph/parts.hpp"
#include "step/exec/cpu_device.hpp"
#include "step/exec/executor.hpp"

namespace lockstep::exec {

namespace {

/// A micro-batch's inputs, all 0.
class Zeros final : public InputSource {
 public:
  explicit Zeros(const Graph& graph) {
    for (const ValueId id : graph.inputs) tensors_.emplace_back(graph.at(id).spec.bytes());
  }
  void get(std::uint64_t /*step*/, int /*micro-batch*/, MicroBatchInputs& inputs) override {
    inputs.tensors.clear();
    for (const auto& tensor : tensors_) inputs.tensors.push_back(tensor.data());
    inputs.valid = kSamples;
  }
  void release(std::uint64_t /*step*/, int /*micro-batch*/) override {}

 private:
  std::vector<std::vector<std::byte>> tensors_;
};

}  // namespace

// The rank's other workers wait for messages that may never come: they must not wait until the deadline.
TEST(PartErrors, AnErrorOfAWorkerEndsTheWaitsOfTheOthers) {
  const Net net(transformer);
  const CpuDevice device;
  const Graph graph = device.lower(net.graph, true);
  const auto parts = split(graph, cut(graph, {.parts = 2}, 2));
  constexpr int kWorkers = 2;
  std::latch both(kWorkers);
  const auto started = Clock::now();
  const auto run = [&](Communicator& ranks) {
    const PartOfModel part{.part = parts[static_cast<std::size_t>(ranks.rank())],
                           .links = links_of(parts, ranks.rank()),
                           .ranks = ranks,
                           .samples = kSamples,
                           .in_flight = 1};
    if (ranks.rank() == 0) {  // it sends only what the first two micro-batches need
      for (const auto& links : part.links.sent) {
        for (const auto& link : links) {
          for (const int micro_batch : {0, 1}) {
            (void)ranks.send(std::vector<std::byte>(link.bytes), 1, part.links.tag(link, micro_batch));
          }
        }
      }
      return;
    }
    WorkerPool pool(kWorkers);
    Executor executor(part, Mode::inference, device, pool, 1);
    const TensorBlock parameters(part.part.graph, part.part.graph.parameters);
    const TensorBlock states(part.part.graph, part.part.graph.states);
    executor.use({parameters, states});
    Zeros source(part.part.graph);
    const PartSchedule schedule{.tasks = {{{0, Pass::forward}}, {{1, Pass::forward}, {2, Pass::forward}}},
                                .rank_of_micro_batch = {{0, 0, 0}, {1, 1, 1}},
                                .numbers = {.to = {{}, {}}, .from = {{0, 1, 2}, {}}}};
    executor.evaluate({.of_part = &schedule}, source, [&](const EvaluatedMicroBatch& micro_batch) {
      both.arrive_and_wait();
      if (micro_batch.micro_batch == 0) throw std::range_error("the first micro-batch");
    });
  };
  EXPECT_THROW(run_in_threads(2, run), std::range_error);
  EXPECT_LT(seconds_since(started), 30) << "half of the time until the deadline";
}

}  // namespace lockstep::exec
