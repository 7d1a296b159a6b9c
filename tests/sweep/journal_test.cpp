// The journal gives the study back, and says what is wrong with one that cannot.
#include "tools/sweep/journal.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/files.hpp"
#include "sweep/sweeps.hpp"
#include "tools/sweep/results.hpp"

namespace lockstep::sweep {
namespace {

class JournalFile : public testing::Test {
 protected:
  JournalFile()
      : path_(testing::TempDir() + "journal-" + testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove(path_);
    static_cast<SweepOptions&>(sweep_) = small_sweep();
    sweep_.canonical = R"({"seed":1,"metric":"accuracy","job_sha256":"a"})";
  }
  ~JournalFile() override { std::filesystem::remove(path_); }

  void fill() const {
    Journal journal(path_, sweep_);
    journal.begin({{{"optimizer", "\"adam\""}, {"learning_rate", "0.01"}}, 20});
    journal.begin({{{"optimizer", "{\"sgd\":{\"momentum\":0.5}}"}}, 20});
    journal.result(0, {.steps = 20,
                       .value = 0.1,
                       .metrics = {{"loss", 2.5}},
                       .outcome = "interrupted",
                       .parameters_sha256 = "abc",
                       .data = {"of then", {{"a.csv", "1"}, {"b.csv", "2"}}},
                       .device_seconds = 1.5,
                       .finished = false});
    journal.promote({0, 40});
    journal.failure(1, {"code 1: a \"reason\"\nin two lines", 0.5, false});
  }
  [[nodiscard]] std::string message() const {
    try {
      const Journal journal(path_, sweep_);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }

  std::string path_;
  config::SweepFile sweep_;
};

TEST_F(JournalFile, GivesTheStudyBack) {
  fill();
  const Journal journal(path_, sweep_);
  const auto& trials = journal.study().trials();
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0].until, 40);
  EXPECT_EQ(trials[0].state, TrialState::waiting);
  EXPECT_EQ(trials[0].reports.at(0).value, 0.1);
  EXPECT_EQ(trials[0].device_seconds, 1.5);
  EXPECT_EQ(trials[1].failures, 1);
  EXPECT_EQ(trials[1].settings.at(0).value, "{\"sgd\":{\"momentum\":0.5}}");
  EXPECT_EQ(
      trials_csv(journal.study()),
      "trial,state,value,steps,device_seconds,failures,message,parameters_sha256,optimizer,"
      "optimizer.sgd.momentum,learning_rate,validation_loss\r\n"
      "0,unfinished,0.1,20,1.500,0,,abc,adam,,0.01,2.5\r\n"
      "1,unfinished,,0,0.500,1,\"code 1: a \"\"reason\"\"\nin two lines\",,\"{\"\"sgd\"\":{\"\"momentum\"\":0.5}}\","
      ",,\r\n");
}

TEST_F(JournalFile, SaysWhichTrialsHaveReadOtherData) {
  fill();
  const Journal journal(path_, sweep_);
  const Study& study = journal.study();
  const auto other = [&](const std::string& data, const Settings& settings,
                         const std::map<std::string, std::string>& sources = {}) {
    return study.trained_on_other({data, sources}, settings) != nullptr;
  };
  EXPECT_FALSE(other("of then", {}));
  EXPECT_TRUE(other("of now", {{"learning_rate", "0.1"}, {"data.validation.fold", "\"2 of 3\""}}));
  EXPECT_FALSE(other("", {})) << "not known yet";
  // Trials that choose their sources may read anything.
  EXPECT_FALSE(other("of now", {{"data.train.table.features", "[\"a\"]"}}));
  EXPECT_FALSE(other("of now", {{"data", "{}"}}));
  // But what more than one of them reads is the same.
  EXPECT_FALSE(other("of now", {{"data", "{}"}}, {{"b.csv", "2"}, {"c.csv", "3"}}));
  EXPECT_TRUE(other("of now", {{"data", "{}"}}, {{"b.csv", "3"}, {"c.csv", "3"}}));
}

TEST_F(JournalFile, ACopySaysWhatItIsACopyOf) {
  sweep_.method = SearchMethod::population;
  {
    Journal journal(path_, sweep_);
    journal.begin({{{"learning_rate", "0.01"}}, 20});
    journal.begin({{{"learning_rate", "0.012"}}, 40, Origin{0, 20}});
  }
  {
    const Journal journal(path_, sweep_);
    EXPECT_EQ(journal.study().trials().at(0).origin, std::nullopt);
    EXPECT_EQ(journal.study().trials().at(1).origin, (Origin{0, 20}));
    EXPECT_EQ(
        trials_csv(journal.study()),
        "trial,state,value,steps,device_seconds,failures,message,parameters_sha256,from_trial,from_step,optimizer,"
        "optimizer.sgd.momentum,learning_rate\r\n"
        "0,unfinished,,0,0.000,0,,,,,,,0.01\r\n"
        "1,unfinished,,0,0.000,0,,,0,20,,,0.012\r\n");
  }
  std::ofstream(path_, std::ios::app)
      << R"({"record":"begin","trial":2,"settings":{},"until":0,"from":{"trial":2,"step":20}})"
      << "\n";
  EXPECT_EQ(message(), path_ +
                           ":4: expected a record of a sweep, found none; the file is damaged. Choose another "
                           "directory with --directory");
}

TEST_F(JournalFile, ALineThatWasNotWrittenToItsEndIsDropped) {
  fill();
  const std::string whole = *read_whole_file(path_);
  std::ofstream(path_, std::ios::app) << R"({"record":"result","trial":1,"st)";
  EXPECT_EQ(Journal(path_, sweep_).repaired(),
            path_ + ": its last line was not written to its end; these 32 bytes have been cut off");
  EXPECT_EQ(*read_whole_file(path_), whole);
  EXPECT_EQ(Journal(path_, sweep_).repaired(), "");
}

TEST_F(JournalFile, AnotherSweepIsRefused) {
  fill();
  sweep_.canonical = R"({"seed":2,"metric":"accuracy","job_sha256":"b"})";
  EXPECT_EQ(message(), path_ +
                           ": expected the sweep that was begun in this directory, found another: it differs in "
                           "sweep.seed, job; choose another directory with --directory");
}

TEST_F(JournalFile, ADamagedLineIsNamed) {
  fill();
  std::ofstream(path_, std::ios::app) << R"({"record":"result","trial":7})"
                                      << "\n";
  EXPECT_EQ(message(), path_ +
                           ":7: expected a record of a sweep, found none; the file is damaged. Choose another "
                           "directory with --directory");
}

}  // namespace
}  // namespace lockstep::sweep
