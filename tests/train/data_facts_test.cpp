// What a checkpoint stores about its training data: read back as written, and refused if damaged.
#include "input/data_facts.hpp"

#include <gtest/gtest.h>

#include "lockstep/error.hpp"
#include "train/small_run.hpp"

namespace lockstep::train {

namespace {

class DataFacts : public testing::Test {
 protected:
  DataFacts()
      : registries_(Registries::built_in()),
        job_(config::load_text(kJob, "job.yaml", {}, catalogue_of(registries_), false)),
        data_(input::prepare_data(job_.data, job_.seed, job_.batch_size, registries_, {})),
        facts_(input::data_facts(data_)) {}

  [[nodiscard]] input::PreparedData recalled(const std::string& facts) const {
    return input::recall_data(facts, job_.data, job_.seed, registries_, "manifest.json");
  }
  /// The facts with one thing replaced.
  [[nodiscard]] std::string with(const std::string& what, const std::string& other) const {
    std::string text = facts_;
    const auto at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what << " is not in " << text;
    return text.replace(at, what.size(), other);
  }
  void expect_refused(const std::string& facts) const {
    try {
      (void)recalled(facts);
      ADD_FAILURE() << "accepted: " << facts;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data) << facts;
      EXPECT_TRUE(
          std::string(error.what()).starts_with("manifest.json: what it says of the training data is damaged: "))
          << error.what();
    }
  }

  Registries registries_;
  JobFile job_;
  input::PreparedData data_;
  std::string facts_;
};

constexpr const char* kImage = R"("kind":"image","dtype":"u8","shape":[28,28,1])";
constexpr const char* kLabel = R"("kind":"label","dtype":"i32","shape":[])";

}  // namespace

TEST_F(DataFacts, AreReadAsTheyWereWritten) {
  const input::PreparedData found = recalled(facts_);
  const DataSetInfo &info = found.train->info(), &expected = data_.train->info();
  EXPECT_EQ(info.format, expected.format);
  EXPECT_EQ(info.class_names, expected.class_names);
  EXPECT_EQ(info.digest, expected.digest);
  ASSERT_EQ(info.features.size(), expected.features.size());
  for (std::size_t i = 0; i < info.features.size(); ++i) {
    EXPECT_EQ(info.features[i].name, expected.features[i].name);
    EXPECT_EQ(info.features[i].kind, expected.features[i].kind);
    EXPECT_EQ(info.features[i].spec.dtype, expected.features[i].spec.dtype);
    EXPECT_EQ(info.features[i].spec.shape, expected.features[i].spec.shape);
  }
  EXPECT_EQ(found.mean, data_.mean);
  EXPECT_EQ(found.stddev, data_.stddev);
  EXPECT_EQ(found.classes, data_.classes);
  EXPECT_EQ(input::data_facts(found), facts_);
}

TEST_F(DataFacts, OfEarlierVersionsAreReadToo) {
  EXPECT_EQ(recalled(with("\"std\":", "\"deviation\":")).stddev, data_.stddev);
}

TEST_F(DataFacts, OfAFeatureThatIsNotWhatItsKindPromisesAreRefused) {
  expect_refused(with(kImage, R"("kind":"image","dtype":"f32","shape":[28,28,1])"));
  expect_refused(with(kImage, R"("kind":"image","dtype":"u8","shape":[28,28])"));
  expect_refused(with(kImage, R"("kind":"image","dtype":"u8","shape":[28,28,0])"));
  expect_refused(with(kImage, R"("kind":"tokens","dtype":"u8","shape":[28])"));
  expect_refused(with(kImage, R"("kind":"image","dtype":"u8","shape":["wide",28,1])"));
  expect_refused(with(kLabel, R"("kind":"label","dtype":"i32","shape":[1])"));
  expect_refused(with(kLabel, R"("kind":"label","dtype":"u8","shape":[])"));
}

TEST_F(DataFacts, StatisticsOfTargetsAreOfTheirNumbers) {
  const auto of_pair = [&](const std::string& targets) {
    std::string facts = with(kLabel, R"("kind":"tensor","dtype":"f32","shape":[2])");
    return facts.insert(1, R"("targets":)" + targets + ",");
  };
  const auto found = recalled(of_pair(R"({"label":{"mean":[1,-2.5],"std":[0.5,3]}})")).targets.at("label");
  EXPECT_EQ(found.mean, (std::vector<double>{1, -2.5}));
  EXPECT_EQ(found.stddev, (std::vector<double>{0.5, 3}));
  for (const char* damaged : {R"({"label":{"mean":[1],"std":[0.5,3]}})", R"({"label":{"mean":[1,2],"std":[0.5,0]}})",
                              R"({"other":{"mean":[1,2],"std":[0.5,1]}})", R"({"image":{"mean":[1,2],"std":[0.5,1]}})",
                              R"({"label":{"mean":[1,2]}})", R"([{"mean":[1,2],"std":[0.5,1]}])"}) {
    expect_refused(of_pair(damaged));
  }
}

TEST_F(DataFacts, OfTablesHaveDatesAndOffsets) {
  DataSetInfo info;
  info.format = "table";
  info.columns = {{"day", {}, false, true}};
  info.features = {{"features", Feature::Kind::columns, {DType::f64, {1}}},
                   {"label", Feature::Kind::tensor, {DType::f32, {}}, {"y"}, {100000000.25}}};
  input::PreparedData data = data_;
  data.train = input::set_without_samples(info);
  data.mean = {19844.5};
  data.stddev = {2};
  const std::string facts = input::data_facts(data);
  const auto found = recalled(facts);
  EXPECT_TRUE(found.train->info().columns.at(0).dates);
  EXPECT_EQ(found.train->info().features.at(1).offsets, (std::vector<double>{100000000.25}));
  EXPECT_EQ(found.features.at(0).spec, (TensorSpec{DType::f32, {1}})) << "as a step gets them";
  EXPECT_EQ(input::data_facts(found), facts);
  std::string earlier = facts, damaged = facts;
  EXPECT_EQ(recalled(earlier.replace(earlier.find("f64"), 3, "f32")).features.at(0).spec.dtype, DType::f32);
  expect_refused(damaged.replace(damaged.find("[100000000.25]"), 14, "[1,2]"));
}

TEST_F(DataFacts, ThatAreNoFactsAreRefused) {
  for (const char* text : {"", "[]", "{}", "{\"format\":1}"}) expect_refused(text);
  expect_refused(facts_.substr(0, facts_.size() / 2));
  expect_refused(with("\"features\":[", "\"features\":[7,"));
}

}  // namespace lockstep::train
