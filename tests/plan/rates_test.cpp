// Where a plan's rates come from, if not from kernels: the makers' figures of GPUs, and the profile of another machine.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "lockstep/error.hpp"
#include "run/plan/device_table.hpp"
#include "run/plan/profile.hpp"

namespace lockstep::plan {

namespace {

TEST(Devices, AreCountedByName) {
  const auto list = devices_of("2xH100,A100-40");
  ASSERT_EQ(list.size(), 3);
  EXPECT_STREQ(list[1]->name, "H100");
  EXPECT_STREQ(list[2]->name, "A100-40");
  try {
    (void)devices_of("8xH101");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_STREQ(error.what(),
                 "--devices: expected devices such as 8xH100,4xA100-40, found '8xH101'; known are V100-32, A100-40, "
                 "A100-80, L40S, H100, H200");
  }
}

class ProfileFile {
 public:
  ProfileFile() : path_((std::filesystem::temp_directory_path() / "lockstep-profile-XXXXXX").string()) {
    close(mkstemp(path_.data()));
  }
  ~ProfileFile() { std::filesystem::remove(path_); }
  ProfileFile(const ProfileFile&) = delete;
  ProfileFile& operator=(const ProfileFile&) = delete;
  void write(const std::string& text) const { std::ofstream(path_) << text; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Profile, IsReadAsItWasWritten) {
  const ProfileFile file;
  const Rates rates{.device = "a CPU",
                    .matmul_flops = 1e10,
                    .conv_flops = 2e10,
                    .element_bytes = 3e9,
                    .add_bytes = 4e9,
                    .update_bytes = 5e9,
                    .message_seconds = 1e-5,
                    .message_bytes = 6e9,
                    .memory = 1 << 30,
                    .cores = 2};
  file.write(profile_text(rates));
  EXPECT_EQ(read_profile(file.path()), rates);
}

TEST(Profile, OthersAreRefused) {
  const ProfileFile file;
  const auto message = [&](const std::string& text) {
    file.write(text);
    try {
      (void)read_profile(file.path());
    } catch (const Error& error) {
      return std::string(error.what()).substr(file.path().size());
    }
    return std::string();
  };
  EXPECT_TRUE(message("no").starts_with(": expected a profile, found no JSON object; make one with"));
  EXPECT_TRUE(message("{}").starts_with(": expected a profile of format 1, found another, or none; make one with"));
  EXPECT_TRUE(message("{\"format\": 1, \"matmul_flops_per_second\": 0}")
                  .starts_with(": matmul_flops_per_second: expected a number above 0, found 0; make one with"));
}

}  // namespace

}  // namespace lockstep::plan
