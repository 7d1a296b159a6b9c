#include "data/soft_labels.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "core/files.hpp"
#include "data/fake_data.hpp"

namespace lockstep::data {
namespace {

class TwoClasses final : public CountingSet {
 public:
  TwoClasses() : CountingSet(2) {
    info_.class_names = {"no", "yes"};
    info_.digest = "two";
  }
};

/// A file of probabilities (0.8, 0.2) and (0.1, 0.9), with some header.
std::string teacher(const std::string& header, std::size_t data_bytes = 16) {
  const std::vector<float> values = {0.8F, 0.2F, 0.1F, 0.9F};
  std::string bytes(8 + header.size() + data_bytes, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  std::memcpy(bytes.data() + 8 + header.size(), values.data(), data_bytes);
  return bytes;
}

std::string header(const std::string& digest = "two", const std::string& shape = "[2,2]") {
  return R"({"__metadata__":{"samples_digest":")" + digest + R"("},"probabilities":{"dtype":"F32","shape":)" + shape +
         R"(,"data_offsets":[0,16]}})";
}

class SoftLabels : public testing::Test {
 protected:
  SoftLabels() : path_(testing::TempDir() + "teacher.safetensors") {}
  std::shared_ptr<const DataSet> read(const std::string& bytes, double weight = 1, double temperature = 1) {
    write_whole_file(path_, bytes);
    return with_soft_labels(std::make_shared<TwoClasses>(), {path_, weight, temperature});
  }
  void refuses(const std::string& bytes, const std::string& why) {
    try {
      (void)read(bytes);
      ADD_FAILURE() << "expected: " << why;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_EQ(error.what(), path_ + ": " + why + "; make it with `lockstep ensemble distill`");
    }
  }
  std::string path_;
};

std::vector<float> label_of(const DataSet& set, std::int64_t id) {
  Sample sample;
  set.read(id, sample);
  const auto values = sample.at(1).tensor.as<float>();
  return {values.begin(), values.end()};
}

TEST_F(SoftLabels, AreMixedWithTheLabels) {
  const auto set = read(teacher(header()), 0.75);
  EXPECT_EQ(set->info().features[1].spec, (TensorSpec{DType::f32, {2}}));
  EXPECT_EQ(set->info().features[1].kind, Feature::Kind::tensor);
  EXPECT_EQ(label_of(*set, 0), (std::vector<float>{0.75F * 0.8F + 0.25F, 0.75F * 0.2F}));
  EXPECT_FLOAT_EQ(label_of(*set, 1)[0], 0.075F);
  EXPECT_FLOAT_EQ(label_of(*set, 1)[1], 0.925F);
  EXPECT_NE(set->info().digest, read(teacher(header()), 0.5)->info().digest);
}

TEST_F(SoftLabels, OfATemperature) {
  const auto set = read(teacher(header()), 1, 2);  // square roots: 2 to 1 and 1 to 3
  EXPECT_NEAR(label_of(*set, 0)[0], 2.0 / 3, 1e-6);
  EXPECT_NEAR(label_of(*set, 1)[0], 0.25, 1e-6);
}

TEST_F(SoftLabels, OfOtherSetsAreOneHot) {
  const auto set = with_one_hot_labels(std::make_shared<TwoClasses>());
  EXPECT_EQ(label_of(*set, 0), (std::vector<float>{1, 0}));
  EXPECT_EQ(label_of(*set, 1), (std::vector<float>{0, 1}));
}

TEST_F(SoftLabels, DamagedAndForeignFiles) {
  refuses("", "expected a safetensors file, found none");
  refuses(teacher(header()).substr(0, 20), "expected a safetensors file, found none");
  const std::string none =
      "expected a safetensors file with the tensor 'probabilities' and 'samples_digest' among its metadata, found none";
  refuses(teacher("{}"), none);
  refuses(teacher(header("two", "[-2,2]")),
          "expected probabilities [samples, classes] of F32, found [-2, 2] of \"F32\" "
          "in 16 bytes");
  refuses(teacher(header(), 12),
          "expected probabilities [samples, classes] of F32, found [2, 2] of \"F32\" in 12 bytes");
  refuses(teacher(header("other")),
          "expected probabilities [2, 2] of this job's training set, found [2, 2] of another "
          "set, or another split of it");
  refuses(teacher(header("two", "[1,2]")),
          "expected probabilities [2, 2] of this job's training set, found [1, 2] of it");
  std::string negative = teacher(header());
  negative[negative.size() - 1] = static_cast<char>(0xbf);  // the sign of the last one
  refuses(negative, "sample 1: expected probabilities from 0 to 1, found -0.9");
}

}  // namespace
}  // namespace lockstep::data
