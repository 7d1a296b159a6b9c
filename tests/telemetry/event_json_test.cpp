#include "observe/telemetry/event_json.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "observe/telemetry/event_schema.hpp"

namespace lockstep::telemetry {
namespace {

template <class Kind>
Kind read(const std::string& line) {
  const auto read = read_event(line);
  EXPECT_EQ(read.damage, "");
  EXPECT_TRUE(read.event && std::holds_alternative<Kind>(*read.event)) << line;
  return read.event ? std::get<Kind>(*read.event) : Kind{};
}

TEST(EventJson, IsOneObjectWithTheFieldsInTheOrderOfTheSchema) {
  EXPECT_EQ(event_line(events::Launch{.attempt = 1, .ranks = 2, .on = "a:2"}),
            R"({"event":"launch","attempt":1,"ranks":2,"on":"a:2"})");
  EXPECT_EQ(event_line(events::Evaluation{
                .step = 10, .set = "validation", .loss = 0.25, .metrics = {{"top_5", 1}, {"accuracy", 0.5}}}),
            R"({"event":"eval","step":10,"set":"validation","loss":0.25,"metrics":{"accuracy":0.5,"top_5":1.0}})");
}

// Byte for byte as other programs read it: the fields, their order and their format are promised.
TEST(EventJson, EveryKindHasItsLine) {
  std::vector<std::string> lines;
  for_each_kind([&](const auto& kind) { lines.push_back(event_line(kind)); });
  EXPECT_EQ(lines,
            (std::vector<std::string>{
                R"({"event":"start","job":"","ranks":0,"threads":0,"hosts":0,"micro_batches":0,"batch_size":0,)"
                R"("parameters":0,"states":0,"steps":0,"epochs":0.0,"device":"","samples":0,)"
                R"("validation_samples":0,"fingerprint":"","exactness":"","first_micro_batch_seconds":0.0,)"
                R"("arena_bytes":0,"seconds":0.0,"version":""})",
                R"({"event":"part","part":0,"parts":0,"ranks":"","first":"","last":"","parameters":0})",
                R"({"event":"gpu","rank":0,"host":"","model":"","memory_bytes":0,"compute_capability":"",)"
                R"("multiprocessors":0,"clock_mhz":0,"memory_clock_mhz":0,"pci_bus":"","driver":""})",
                R"({"event":"step","step":0,"epoch":0,"loss":0.0,"learning_rate":0.0,"metrics":{},)"
                R"("samples_per_second":0.0,"data_wait_seconds":0.0,"seconds":0.0})",
                R"({"event":"eval","step":0,"set":"","loss":0.0,"metrics":{}})",
                R"({"event":"checkpoint","step":0,"path":"","seconds":0.0,"blocked_seconds":0.0,"bytes":0})",
                R"({"event":"copy","step":0,"path":"","fetched":false,"seconds":0.0,"bytes":0})",
                R"({"event":"goodput","step":0,"useful_seconds":0.0,"repeated_seconds":0.0,"checkpoint_seconds":0.0,)"
                R"("data_wait_seconds":0.0,"peer_wait_seconds":0.0,"restart_seconds":0.0})",
                R"({"event":"balance","step":0,"reason":"","evidence":"","shares_by_rank":{},"micro_batches_moved":0})",
                R"({"event":"bad_sample","step":0,"set":"","sample":0,"name":"","replaced_by":0,)"
                R"("replaced_by_name":"","message":""})",
                R"({"event":"restart","step":0})", R"({"event":"warning","message":""})",
                R"({"event":"launch","attempt":0,"ranks":0,"on":""})",
                R"({"event":"end","outcome":"","steps":0,"samples":0,"seconds":0.0,"samples_per_second":0.0,)"
                R"("metrics":{},"phases":{},"interrupted":false,"parameters_sha256":"","micro_batches_by_rank":{},)"
                R"("bytes_sent_by_rank":{},"bytes_by_formula_by_rank":{},"compute_seconds_by_rank":{},)"
                R"("bytes_read_by_rank":{},"prefetch":{},"sample_cache_bytes":0})"}));
}

TEST(EventJson, OptionalFieldsAreThereWhereTheyHaveAValue) {
  EXPECT_EQ(event_line(events::Restart{.reason = "death",
                                       .message = "rank 1 died",
                                       .rank = 1,
                                       .host = "a",
                                       .step = 7,
                                       .attempt = 2,
                                       .after_seconds = 0.5}),
            R"({"event":"restart","reason":"death","message":"rank 1 died","rank":1,"host":"a","step":7,"attempt":2,)"
            R"("after_seconds":0.5})");
  EXPECT_EQ(event_line(events::Restart{.step = 7, .path = "p"}), R"({"event":"restart","step":7,"path":"p"})");
}

TEST(EventJson, RanksAreNamesInTheOrderOfTexts) {
  const events::Balance balance{.shares_by_rank = {{0, 5}, {2, 3}, {10, 1.5}}};
  const std::string line = event_line(balance);
  EXPECT_NE(line.find(R"("shares_by_rank":{"0":5.0,"10":1.5,"2":3.0})"), std::string::npos) << line;
  EXPECT_EQ(read<events::Balance>(line).shares_by_rank, balance.shares_by_rank);
}

TEST(EventJson, NumbersThatAreNotFiniteAreStrings) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::string line =
      event_line(events::Evaluation{.loss = std::nan(""), .metrics = {{"high", inf}, {"low", -inf}}});
  EXPECT_EQ(line, R"({"event":"eval","step":0,"set":"","loss":"nan","metrics":{"high":"inf","low":"-inf"}})");
  const auto eval = read<events::Evaluation>(line);
  EXPECT_TRUE(std::isnan(eval.loss));
  EXPECT_EQ(eval.metrics, (events::ByName{{"high", inf}, {"low", -inf}}));
}

TEST(EventJson, DoublesAndLargeIntegersComeBackExactly) {
  const auto end = read<events::End>(
      event_line(events::End{.samples = 9007199254740993, .seconds = 0.1 + 0.2, .interrupted = true}));
  EXPECT_EQ(end.seconds, 0.1 + 0.2);
  EXPECT_EQ(end.samples, 9007199254740993);
  EXPECT_TRUE(end.interrupted);
  EXPECT_EQ(end.checkpoint, std::nullopt);
}

TEST(EventJson, TextIsEscapedAndBytesThatAreNotUtf8AreReplaced) {
  EXPECT_EQ(event_line(events::Warning{"a\n\"b\"\xff"}),
            "{\"event\":\"warning\",\"message\":\"a\\n\\\"b\\\"\xef\xbf\xbd\"}");
}

TEST(EventJson, TheTimeIsTheLastField) {
  const std::string line = with_time(event_line(events::Warning{"a"}));
  EXPECT_TRUE(line.starts_with(R"({"event":"warning","message":"a","time":1)") && line.ends_with("}\n")) << line;
  EXPECT_GT(read_event(line).time, 1.6e9);
  EXPECT_EQ(read<events::Warning>(line).message, "a");
}

TEST(EventJson, LinesOfOtherProgramsAndVersionsAreNoEvents) {
  for (const std::string line : {"", "{", "[1]", "null", R"({"step":1})", R"({"event":7})", R"({"event":"lunch"})",
                                 R"({"event":"step","step":)"}) {
    const auto read = read_event(line);
    EXPECT_FALSE(read.event) << line;
    EXPECT_EQ(read.name, "") << line;
  }
  EXPECT_FALSE(read_event(std::string(100'000, '[')).event);
  EXPECT_EQ(read<events::Warning>(R"({"event":"warning","color":"green","message":"a"})").message, "a");
  const auto step = read<events::Step>(R"({"event":"step","step":3})");
  EXPECT_EQ(step.step, 3);
  EXPECT_TRUE(std::isnan(step.loss));
}

TEST(EventJson, ADamagedFieldIsNamed) {
  const std::map<std::string, std::string> damages = {
      {R"({"event":"step","step":"one"})", "expected an integer as 'step'"},
      {R"({"event":"step","step":1.5})", "expected an integer as 'step'"},
      {R"({"event":"step","step":18446744073709551615})", "expected an integer as 'step'"},
      {R"({"event":"step","loss":[]})", "expected a number as 'loss'"},
      {R"({"event":"step","skipped":1})", "expected a boolean as 'skipped'"},
      {R"({"event":"step","metrics":{"a":"b"}})", "expected numbers by name as 'metrics'"},
      {R"({"event":"warning","message":7})", "expected a text as 'message'"},
      {R"({"event":"balance","shares_by_rank":{"zero":1}})", "expected numbers by rank as 'shares_by_rank'"},
      {R"({"event":"balance","shares_by_rank":{"1234567890":1}})", "expected numbers by rank as 'shares_by_rank'"},
      {R"({"event":"warning","message":"a","time":"now"})", "expected a number as 'time'"}};
  for (const auto& [line, damage] : damages) {
    const auto read = read_event(line);
    EXPECT_FALSE(read.event) << line;
    EXPECT_NE(read.name, "") << line;
    EXPECT_EQ(read.damage, damage) << line;
  }
}

TEST(EventSchema, DescribesEveryFieldOnce) {
  const std::string table = events_markdown();
  for_each_kind([&](const auto& kind) {
    std::set<std::string> names;
    for_each_field(kind, [&](const std::string& name, const auto& /*value*/, events::Unit unit) {
      EXPECT_TRUE(names.insert(name).second) << kind.kName << " " << name;
      const bool seconds = name == "seconds" || name == "phases" || name.find("_seconds") != std::string::npos;
      EXPECT_EQ(unit == events::Unit::seconds, seconds) << name;
      EXPECT_EQ(unit == events::Unit::bytes, name.find("bytes") != std::string::npos) << name;
      EXPECT_NE(table.find("||`" + name + "`|"), std::string::npos) << name;
    });
  });
  EXPECT_NE(table.find("||`gradient_norm`|number?||"), std::string::npos) << table;
}

}  // namespace
}  // namespace lockstep::telemetry
