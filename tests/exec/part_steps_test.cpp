// Where parts wait and when they send: neither earlier nor later than their programs require.
#include "step/exec/part_steps.hpp"

#include <gtest/gtest.h>

#include "exec/part_nets.hpp"
#include "graph/cut.hpp"
#include "graph/parts.hpp"
#include "step/exec/compiled.hpp"
#include "step/exec/cpu_device.hpp"

namespace lockstep::exec {

namespace {

using Sent = std::vector<PartStep::Sent>;
using Entries = std::vector<std::size_t>;

Instruction forward(std::vector<Location> inputs, std::vector<Location> outputs) {
  Instruction instruction;
  instruction.inputs = std::move(inputs);
  instruction.outputs = std::move(outputs);
  return instruction;
}

Instruction backward(std::vector<Location> output_gradients, std::vector<Location> input_gradients) {
  Instruction instruction;
  instruction.kind = Instruction::Kind::backward;
  instruction.output_gradients = std::move(output_gradients);
  instruction.input_gradients = std::move(input_gradients);
  return instruction;
}

Location arena(std::int64_t at) {
  return {Space::arena, at};
}

TEST(PartSteps, ABranchComputesBeforeItWaits) {
  Program program;
  program.instructions = {forward({{Space::input, 0}}, {arena(0)}),
                          forward({arena(0)}, {arena(256)}),
                          forward({arena(256), {Space::received, 0}}, {arena(512)}),
                          backward({}, {arena(768), arena(1024)}),
                          backward({arena(768)}, {arena(0)}),
                          backward({arena(0)}, {})};
  program.forward_end = 3;
  program.received_gradients = {{arena(1024)}};
  const PartSteps steps = steps_of(program, 1, 0);
  ASSERT_EQ(steps.forward.size(), 2U);
  EXPECT_EQ(steps.forward[0].end, 2U);
  EXPECT_EQ(steps.forward[0].awaited, Entries{});
  EXPECT_EQ(steps.forward[1].end, 3U);
  EXPECT_EQ(steps.forward[1].awaited, Entries{0});
  ASSERT_EQ(steps.backward.size(), 2U);
  EXPECT_EQ(steps.backward[0].end, 4U);
  EXPECT_EQ(steps.backward[0].sent, (Sent{{0, 0}})) << "the branch's own backward comes after it";
  EXPECT_EQ(steps.backward[1].end, 6U);
}

TEST(PartSteps, MemoryThatIsUsedAgainIsSentWhenItWasWrittenLast) {
  Program program;
  program.instructions = {forward({{Space::input, 0}}, {arena(0)}), forward({arena(0)}, {arena(256)}),
                          forward({arena(256)}, {arena(0)}), forward({arena(0)}, {arena(512)})};
  program.forward_end = 4;
  program.sent = {arena(0), arena(512)};
  const PartSteps steps = steps_of(program, 0, 0);
  ASSERT_EQ(steps.forward.size(), 2U);
  EXPECT_EQ(steps.forward[0].end, 3U);
  EXPECT_EQ(steps.forward[0].sent, (Sent{{0, 0}}));
  EXPECT_EQ(steps.forward[1].end, 4U);
  EXPECT_EQ(steps.forward[1].sent, (Sent{{1, 0}}));
  EXPECT_TRUE(steps.backward.empty());
}

TEST(PartSteps, WhatIsOnlyPassedOnIsAwaitedAndSentAtTheEnd) {
  Program program;
  program.instructions = {forward({{Space::input, 0}}, {arena(0)}), backward({}, {})};
  program.forward_end = 1;
  program.sent = {{Space::received, 0}};
  program.received_gradients = {{{Space::arrived, 0}}};
  const PartSteps steps = steps_of(program, 1, 1);
  ASSERT_EQ(steps.forward.size(), 2U);
  EXPECT_EQ(steps.forward[1].end, 1U);
  EXPECT_EQ(steps.forward[1].awaited, Entries{0});
  EXPECT_EQ(steps.forward[1].sent, (Sent{{0, 0}}));
  ASSERT_EQ(steps.backward.size(), 2U);
  EXPECT_EQ(steps.backward[1].end, 2U);
  EXPECT_EQ(steps.backward[1].awaited, Entries{0});
  EXPECT_EQ(steps.backward[1].sent, (Sent{{0, 0}}));
}

// For real programs: each value is awaited once and sent once, and all instructions are run.
TEST(PartSteps, OfEachCutOfEachNet) {
  const CpuDevice device;
  for (const auto& [name, build] : nets()) {
    const Net net(build);
    const Graph graph = device.lower(net.graph, true);
    for (const int count : {2, 3, 4}) {
      for (const GraphPart& part : split(graph, cut(graph, {.parts = count}, count))) {
        const Program program =
            program_of(part.graph, Mode::training, needs_of(KernelSet(part.graph, Mode::training, device)),
                       {.boundary = &part.boundary});
        const PartSteps steps = steps_of(program, part.boundary.received.size(), part.boundary.arrivals.size());
        SCOPED_TRACE(name);
        std::size_t end = 0, values = 0, gradients = 0, terms = 0;
        Entries received, arrived;
        for (const PartStep& step : steps.forward) {
          EXPECT_GE(step.end, end);
          end = step.end;
          values += step.sent.size();
          received.insert(received.end(), step.awaited.begin(), step.awaited.end());
        }
        EXPECT_EQ(end, static_cast<std::size_t>(program.forward_end));
        for (const PartStep& step : steps.backward) {
          EXPECT_GE(step.end, end);
          end = step.end;
          gradients += step.sent.size();
          arrived.insert(arrived.end(), step.awaited.begin(), step.awaited.end());
        }
        EXPECT_EQ(end, program.instructions.size());
        for (const auto& list : program.received_gradients) terms += list.size();
        EXPECT_EQ(values, program.sent.size());
        EXPECT_EQ(gradients, terms);
        EXPECT_EQ(received.size(), part.boundary.received.size());
        EXPECT_EQ(arrived.size(), part.boundary.arrivals.size());
      }
    }
  }
}

}  // namespace

}  // namespace lockstep::exec
