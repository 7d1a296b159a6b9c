// Which server and as whom, and where an object is.
#include "data/store/access.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "lockstep/error.hpp"

namespace lockstep::store {
namespace {

TEST(ObjectLocation, IsABucketAndAKey) {
  const auto location = parse_location("s3://data/sets/digits/");
  EXPECT_EQ(location.bucket, "data");
  EXPECT_EQ(location.key, "sets/digits");
  EXPECT_EQ(location.text(), "s3://data/sets/digits");
  EXPECT_EQ(parse_location("s3://data").text(), "s3://data");
}

TEST(ObjectLocation, NeedsABucket) {
  try {
    (void)parse_location("s3:///digits");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_STREQ(error.what(), "s3:///digits: expected s3://BUCKET/KEY, found no bucket");
  }
}

class AccessTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* const name : {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION",
                                   "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"}) {
      ::unsetenv(name);
    }
    folder_ = std::filesystem::temp_directory_path() / ("access-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    set("AWS_SHARED_CREDENTIALS_FILE", (folder_ / "credentials").string());
    set("AWS_CONFIG_FILE", (folder_ / "config").string());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  static void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }
  void write(const std::string& file, const std::string& text) const { std::ofstream(folder_ / file) << text; }

 private:
  std::filesystem::path folder_;
};

TEST_F(AccessTest, WithoutAnythingIsAmazonsWithoutAKey) {
  const Access access = access_from_environment();
  EXPECT_EQ(access.bucket_url("data"), "https://data.s3.us-east-1.amazonaws.com");
  EXPECT_EQ(access.find_key().id, "");
}

TEST_F(AccessTest, VariablesComeFirst) {
  write("credentials", "[default]\naws_access_key_id = file\naws_secret_access_key = hidden\n");
  write("config", "[default]\nregion = eu-west-1\nendpoint_url = http://file:1/\n");
  set("AWS_ENDPOINT_URL", "http://store:9000/");
  set("AWS_ACCESS_KEY_ID", "me");
  set("AWS_SECRET_ACCESS_KEY", "secret");
  const Access access = access_from_environment();
  EXPECT_EQ(access.bucket_url("data"), "http://store:9000/data");
  EXPECT_EQ(access.region, "eu-west-1");
  EXPECT_EQ(access.find_key().id, "me");
  EXPECT_EQ(access.find_key().secret, "secret");
}

TEST_F(AccessTest, AProfileIsASectionOfTheFiles) {
  write("credentials",
        "[default]\naws_access_key_id = other\naws_secret_access_key = other\n"
        "[team]\n# of the team\naws_access_key_id=file\naws_secret_access_key=a=b\n");
  write("config", "[profile team]\nregion = eu-west-1\ns3 =\n  endpoint_url = http://nested\n");
  set("AWS_PROFILE", "team");
  const Access access = access_from_environment();
  EXPECT_EQ(access.find_key().id, "file");
  EXPECT_EQ(access.find_key().secret, "a=b");
  EXPECT_EQ(access.region, "eu-west-1");
  EXPECT_EQ(access.endpoint, "");
}

TEST_F(AccessTest, HalfAKeyIsAMistake) {
  set("AWS_SECRET_ACCESS_KEY", "secret");
  try {
    (void)access_from_environment().find_key();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_STREQ(error.what(),
                 "object store: expected AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, found only the second");
  }
}

}  // namespace
}  // namespace lockstep::store
