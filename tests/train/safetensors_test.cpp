#include "train/safetensors.hpp"

#include <gtest/gtest.h>

#include "lockstep/error.hpp"

namespace lockstep::train {

namespace {

std::string message_of(const std::string& bytes) {
  try {
    (void)SafetensorsFile::parse(bytes, "model.safetensors");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    return error.what();
  }
  return "no error";
}

const std::vector<float> kValues = {1, 2, 3, 4, 5, 6};

std::string sample() {
  return to_safetensors({{"a.weight", {2, 3}, kValues}, {"empty", {0}, {}}}, {{"format", "lockstep"}});
}

}  // namespace

TEST(Safetensors, RoundTrip) {
  const auto file = SafetensorsFile::parse(sample(), "model.safetensors");
  EXPECT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.metadata().at("format"), "lockstep");
  std::vector<float> out(6);
  file.copy("a.weight", {2, 3}, out);
  EXPECT_EQ(out, kValues);
}

TEST(Safetensors, DamagedFilesAreNamed) {
  const std::string good = sample();
  EXPECT_EQ(message_of("abc"), "model.safetensors: not a usable safetensors file: it is shorter than 8 bytes");
  EXPECT_EQ(message_of(good.substr(0, 20)),
            "model.safetensors: not a usable safetensors file: its header of 160 bytes is longer than the file");
  EXPECT_EQ(
      message_of(good.substr(0, good.size() - 4)),
      "model.safetensors: not a usable safetensors file: tensor 'a.weight' spans bytes 0 to 24, but the data has 20");
  std::string broken = good;
  broken[8] = '[';
  EXPECT_EQ(message_of(broken),
            "model.safetensors: not a usable safetensors file: its header is not the JSON that the format asks for");
}

TEST(Safetensors, ShapesMustAgree) {
  const auto file = SafetensorsFile::parse(sample(), "model.safetensors");
  std::vector<float> out(6);
  try {
    file.copy("a.weight", {3, 2}, out);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "model.safetensors: tensor 'a.weight': expected F32 [3, 2], found F32 [2, 3]");
  }
  try {
    file.copy("b", {1}, out);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "model.safetensors: it has no tensor 'b'");
  }
}

}  // namespace lockstep::train
