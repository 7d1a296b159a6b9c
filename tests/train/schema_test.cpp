// The schema of training data: read back as written, and refused if damaged.
#include "data/input/schema.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "data/input/prepared_data.hpp"
#include "lockstep/error.hpp"
#include "train/small_run.hpp"

namespace lockstep::train {

namespace {

class DataSchema : public testing::Test {
 protected:
  DataSchema()
      : registries_(Registries::built_in()),
        job_(config::load_text(kJob, "job.yaml", {}, catalogue_of(registries_), false)),
        data_(input::learn(job_.data, job_.seed, job_.batch_size, registries_, {})),
        text_(data_.schema.text()) {}

  [[nodiscard]] static input::Schema parsed(const std::string& text) {
    return input::Schema::parse(text, "manifest.json");
  }
  [[nodiscard]] input::PreparedData applied(const std::string& text) const {
    return input::apply(parsed(text), job_.data, job_.seed, registries_);
  }
  /// The text with one thing replaced.
  [[nodiscard]] std::string with(const std::string& what, const std::string& other) const {
    std::string text = text_;
    const auto at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what << " is not in " << text;
    return text.replace(at, what.size(), other);
  }
  static void expect_refused(const std::string& text) {
    try {
      (void)parsed(text);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data) << text;
      EXPECT_TRUE(
          std::string(error.what()).starts_with("manifest.json: what it says of the training data is damaged: "))
          << error.what();
    }
  }

  Registries registries_;
  JobFile job_;
  input::PreparedData data_;
  std::string text_;
};

constexpr const char* kImage = R"("kind":"image","dtype":"u8","shape":[28,28,1])";
constexpr const char* kLabel = R"("kind":"label","dtype":"i32","shape":[])";

/// Writes images of 1 x 1, whose class is 0, as IDX files.
void write_idx(const std::string& folder, const std::string& part, char samples) {
  const std::string head{'\0', '\0', '\x08'}, count{'\0', '\0', '\0', samples}, one{'\0', '\0', '\0', '\1'};
  std::ofstream(folder + "/" + part + "-images-idx3-ubyte")
      << head << '\3' << count << one << one << std::string(static_cast<std::size_t>(samples), 'x');
  std::ofstream(folder + "/" + part + "-labels-idx1-ubyte")
      << head << '\1' << count << std::string(static_cast<std::size_t>(samples), '\0');
}

}  // namespace

TEST_F(DataSchema, IsReadAsItWasWritten) {
  const input::Schema found = parsed(text_);
  const DataSetInfo &info = found.info, &expected = data_.train->info();
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
  EXPECT_EQ(found.mean, data_.schema.mean);
  EXPECT_EQ(found.stddev, data_.schema.stddev);
  EXPECT_EQ(found.digests, data_.schema.digests);
  EXPECT_EQ(found.classes(), 10);
  EXPECT_EQ(found.text(), text_);
}

TEST_F(DataSchema, OfEarlierVersionsIsReadToo) {
  EXPECT_EQ(parsed(with("\"std\":", "\"deviation\":")).stddev, data_.schema.stddev);
}

TEST_F(DataSchema, OfAFeatureThatIsNotWhatItsKindPromisesIsRefused) {
  expect_refused(with(kImage, R"("kind":"image","dtype":"f32","shape":[28,28,1])"));
  expect_refused(with(kImage, R"("kind":"image","dtype":"u8","shape":[28,28])"));
  expect_refused(with(kImage, R"("kind":"image","dtype":"u8","shape":[28,28,0])"));
  expect_refused(with(kImage, R"("kind":"tokens","dtype":"u8","shape":[28])"));
  expect_refused(with(kImage, R"("kind":"image","dtype":"u8","shape":["wide",28,1])"));
  expect_refused(with(kLabel, R"("kind":"label","dtype":"i32","shape":[1])"));
  expect_refused(with(kLabel, R"("kind":"label","dtype":"u8","shape":[])"));
}

TEST_F(DataSchema, StatisticsOfTargetsAreOfTheirNumbers) {
  const auto of_pair = [&](const std::string& targets) {
    std::string text = with(kLabel, R"("kind":"tensor","dtype":"f32","shape":[2])");
    return text.insert(1, R"("targets":)" + targets + ",");
  };
  const auto found = parsed(of_pair(R"({"label":{"mean":[1,-2.5],"std":[0.5,3]}})")).targets.at("label");
  EXPECT_EQ(found.mean, (std::vector<double>{1, -2.5}));
  EXPECT_EQ(found.stddev, (std::vector<double>{0.5, 3}));
  for (const char* damaged : {R"({"label":{"mean":[1],"std":[0.5,3]}})", R"({"label":{"mean":[1,2],"std":[0.5,0]}})",
                              R"({"other":{"mean":[1,2],"std":[0.5,1]}})", R"({"image":{"mean":[1,2],"std":[0.5,1]}})",
                              R"({"label":{"mean":[1,2]}})", R"([{"mean":[1,2],"std":[0.5,1]}])"}) {
    expect_refused(of_pair(damaged));
  }
}

TEST_F(DataSchema, OfTablesHasDatesAndOffsets) {
  input::Schema schema;
  schema.info.format = "table";
  schema.info.columns = {{"day", {}, false, true}};
  schema.info.features = {{"features", Feature::Kind::columns, {DType::f64, {1}}},
                          {"label", Feature::Kind::tensor, {DType::f32, {}}, {"y"}, {100000000.25}}};
  schema.mean = {19844.5};
  schema.stddev = {2};
  const std::string text = schema.text();
  const auto found = parsed(text);
  EXPECT_TRUE(found.info.columns.at(0).dates);
  EXPECT_EQ(found.info.features.at(1).offsets, (std::vector<double>{100000000.25}));
  EXPECT_EQ(applied(text).features.at(0).spec, (TensorSpec{DType::f32, {1}})) << "as a step gets them";
  EXPECT_EQ(found.text(), text);
  std::string earlier = text, damaged = text;
  EXPECT_EQ(applied(earlier.replace(earlier.find("f64"), 3, "f32")).features.at(0).spec.dtype, DType::f32);
  expect_refused(damaged.replace(damaged.find("[100000000.25]"), 14, "[1,2]"));
}

TEST_F(DataSchema, ASourceStandsForThePartOfItsSetWhetherLearnedOrApplied) {
  const Folder folder;
  write_idx(folder.path(), "train", 3);
  write_idx(folder.path(), "t10k", 1);
  JobFile job = job_;
  job.data = {};
  job.data.train.kind = SourceKind::idx;
  job.data.train.paths = {folder.path()};
  job.data.validation = job.data.train;
  const input::LearnOptions uncached{.cache_directory = ""};
  const auto learned = input::learn(job.data, 1, 1, registries_, {}, uncached);
  EXPECT_EQ(learned.train->size(), 3);
  EXPECT_EQ(learned.validation->size(), 1);
  const auto model = input::apply(parsed(learned.schema.text()), job.data, 1, registries_);
  EXPECT_EQ(model.train, nullptr) << "nothing is open yet";
  const auto communicator = make_single_communicator();
  const auto again = input::open_as_trained(model, "train", job, {}, *communicator);
  EXPECT_EQ(again.train->info().digest, learned.train->info().digest);
  EXPECT_EQ(again.validation->info().digest, learned.validation->info().digest);
  EXPECT_EQ(input::open_set(model, "test", job.data.train, *communicator)->size(), 1);
}

TEST_F(DataSchema, ThatIsNoneIsRefused) {
  for (const char* text : {"", "[]", "{}", "{\"format\":1}"}) expect_refused(text);
  expect_refused(text_.substr(0, text_.size() / 2));
  expect_refused(with("\"features\":[", "\"features\":[7,"));
}

}  // namespace lockstep::train
