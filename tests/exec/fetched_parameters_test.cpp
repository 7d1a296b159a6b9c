// When a worker needs which parameters from other hosts.
#include "step/exec/fetched_parameters.hpp"

#include <gtest/gtest.h>

namespace lockstep::exec {
namespace {

/// One instruction for each list of parameters to be read.
Program program_of(const std::vector<std::vector<std::int64_t>>& read, std::int32_t forward_end) {
  Program program;
  program.forward_end = forward_end;
  for (const auto& parameters : read) {
    Instruction& instruction = program.instructions.emplace_back();
    for (const std::int64_t parameter : parameters) instruction.parameters.push_back({Space::parameter, parameter});
  }
  return program;
}

// Parameters 0 and 1 are one unit, 2 another, 3 and 4 a third.
const std::vector<int> kUnits = {0, 0, 1, 2, 2};

TEST(UnitUses, AreRowsOfInstructionsThatReadTheSame) {
  const Program program = program_of({{0}, {}, {1}, {2}, {3, 4}, {}, {4}, {3}, {2}, {1}, {0}}, 6);
  EXPECT_EQ(unit_uses(program, kUnits, false),
            (std::vector<UnitUse>{{0, 0, 2}, {1, 3, 3}, {2, 4, 7}, {1, 8, 8}, {0, 9, 10}}));
}

TEST(UnitUses, OfAPartEndWithForward) {
  const Program program = program_of({{0}, {2}, {}, {2}, {0}}, 2);
  EXPECT_EQ(unit_uses(program, kUnits, true), (std::vector<UnitUse>{{0, 0, 0}, {1, 1, 1}, {1, 3, 3}, {0, 4, 4}}));
}

TEST(UnitUses, OverlapWhereOneInstructionReadsTwoUnits) {
  const Program program = program_of({{0}, {0, 2}, {2, 3}, {0}}, 4);
  EXPECT_EQ(unit_uses(program, kUnits, false), (std::vector<UnitUse>{{0, 0, 1}, {1, 1, 2}, {2, 2, 2}, {0, 3, 3}}));
}

TEST(UnitUses, EndBeforeTooManyOthersBegin) {
  const Program program = program_of({{0, 2}, {0, 3}, {0, 2}, {0, 3}}, 4);
  EXPECT_EQ(unit_uses(program, kUnits, false),
            (std::vector<UnitUse>{{0, 0, 3}, {1, 0, 0}, {2, 1, 1}, {1, 2, 2}, {2, 3, 3}}));
  // Of four slots, the first one's use would end after the fifth has begun.
  EXPECT_EQ(unit_uses(program, kUnits, false, 4),
            (std::vector<UnitUse>{{0, 0, 1}, {1, 0, 0}, {2, 1, 1}, {0, 2, 3}, {1, 2, 2}, {2, 3, 3}}));
}

}  // namespace
}  // namespace lockstep::exec
