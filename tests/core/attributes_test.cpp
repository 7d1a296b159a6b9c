#include "lockstep/attributes.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "lockstep/error.hpp"

namespace lockstep {

namespace {

const std::vector<AttributeSpec>& specs() {
  static const std::vector<AttributeSpec> kSpecs = {
      {.name = "filters", .kind = AttributeKind::integer, .doc = "", .minimum = 1, .maximum = 4096},
      {.name = "rate", .kind = AttributeKind::number, .doc = "", .default_value = 0.5, .minimum = 0, .maximum = 1},
      {.name = "kernel", .kind = AttributeKind::integers, .doc = "", .default_value = std::int64_t{3}, .minimum = 1},
      {.name = "padding",
       .kind = AttributeKind::text,
       .doc = "",
       .default_value = "same",
       .choices = {"same", "valid"}},
      {.name = "tied", .kind = AttributeKind::text, .doc = "", .optional = true},
  };
  return kSpecs;
}

std::string message_of(std::map<std::string, Attribute> values) {
  try {
    (void)complete(specs(), Attributes(std::move(values)), "op 'conv'");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST(Attributes, FallbacksAreFilledIn) {
  const Attributes all = complete(specs(), Attributes({{"filters", std::int64_t{8}}}), "op 'conv'");
  EXPECT_EQ(all.integer("filters"), 8);
  EXPECT_EQ(all.number("rate"), 0.5);
  EXPECT_EQ(all.integers("kernel"), std::vector<std::int64_t>{3});
  EXPECT_EQ(all.text("padding"), "same");
  EXPECT_FALSE(all.has("tied")) << "an optional attribute stays absent";
}

TEST(Attributes, AnIntegerIsANumberToo) {
  const Attributes all = complete(specs(), Attributes({{"filters", std::int64_t{8}}, {"rate", std::int64_t{1}}}), "op");
  EXPECT_EQ(all.number("rate"), 1.0);
}

TEST(Attributes, NamesWhatIsWrong) {
  EXPECT_EQ(message_of({}), "op 'conv': filters is missing");
  EXPECT_EQ(message_of({{"filters", std::int64_t{0}}}), "op 'conv': filters: 0 is out of range");
  EXPECT_EQ(message_of({{"filters", 1.5}}), "op 'conv': filters: expected an integer, found 1.5");
  EXPECT_EQ(message_of({{"filters", std::int64_t{8}}, {"colour", true}}), "op 'conv': it has no attribute 'colour'");
  EXPECT_EQ(message_of({{"filters", std::int64_t{8}}, {"padding", std::string("zero")}}),
            "op 'conv': padding: expected one of same, valid, found 'zero'");
  EXPECT_EQ(message_of({{"filters", std::int64_t{8}}, {"kernel", std::vector<std::int64_t>{3, 0}}}),
            "op 'conv': kernel: 0 is out of range");
  EXPECT_EQ(message_of({{"filters", std::int64_t{8}}, {"rate", std::numeric_limits<double>::quiet_NaN()}}),
            "op 'conv': rate: nan is out of range");
}

TEST(Attributes, SpansAndChecksAcrossAttributes) {
  const std::vector<AttributeSpec> of_schedule = {
      {.name = "milestones", .kind = AttributeKind::spans},
      {.name = "factor", .kind = AttributeKind::number, .default_value = 0.1, .minimum = 0, .above_minimum = true},
      {.name = "every", .kind = AttributeKind::span, .default_value = Span{1, true}}};
  const std::vector<AttributeCheck> checks = {{{"milestones"}, [](const Attributes& given) -> std::string {
                                                 return given.spans("milestones").empty() ? "expected some" : "";
                                               }}};
  const auto message = [&](std::map<std::string, Attribute> values) -> std::string {
    try {
      (void)complete(of_schedule, Attributes(std::move(values)), "schedule 'steps'", checks);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::vector<Span> milestones = {{10, true}, {1, false}, {0.5, true}};
  EXPECT_EQ(message({{"milestones", milestones}}), "accepted");
  EXPECT_EQ(message({{"milestones", std::int64_t{3}}}),
            "schedule 'steps': milestones: expected a list of spans, found 3");
  EXPECT_EQ(message({{"milestones", milestones}, {"every", Span{20, false}}}), "accepted");
  EXPECT_EQ(message({{"milestones", milestones}, {"every", milestones}}),
            "schedule 'steps': every: expected a span, found [10 epochs, 1 step, 0.5 epochs]");
  EXPECT_EQ(message({{"milestones", std::vector<Span>()}}), "schedule 'steps': milestones: expected some");
  EXPECT_EQ(message({{"milestones", milestones}, {"factor", 0.0}}), "schedule 'steps': factor: 0 is out of range");
  EXPECT_EQ(to_string(Attribute(milestones)), "[10 epochs, 1 step, 0.5 epochs]");
  EXPECT_EQ(milestones[2].steps(25), 13);
}

TEST(Attributes, AskingForWhatIsNotThereIsABug) {
  try {
    (void)Attributes().integer("filters");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::internal);
  }
}

}  // namespace lockstep
