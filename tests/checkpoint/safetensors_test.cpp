#include "run/checkpoint/safetensors.hpp"

#include <gtest/gtest.h>

#include "lockstep/error.hpp"

namespace lockstep::checkpoint {

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

TEST(Safetensors, ShapesThatOverflowAreRefused) {
  const auto message = [](const std::string& shape, const std::string& offsets, std::size_t bytes) {
    std::string header = R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
    std::string file(8, '\0');
    file[0] = static_cast<char>(header.size());
    return message_of(file + header + std::string(bytes, '\0'));
  };
  const std::string start = "model.safetensors: not a usable safetensors file: ";
  EXPECT_EQ(message("[1,4]", "[0,16]", 16), "no error");
  EXPECT_EQ(message("[4611686018427387905,4]", "[0,16]", 16),
            start + "tensor 'a' cannot have the shape [4611686018427387905, 4]");
  EXPECT_EQ(message("[4611686018427387904,4,0]", "[0,0]", 0),
            start + "tensor 'a' cannot have the shape [4611686018427387904, 4, 0]");
  EXPECT_EQ(message("[-1]", "[0,0]", 0), start + "tensor 'a' cannot have the shape [-1]");
  EXPECT_EQ(message("[1e300]", "[0,4]", 4), start + "its header is not the JSON that the format asks for");
  EXPECT_EQ(message("[1]", "[0,18446744073709551616]", 4),
            start + "its header is not the JSON that the format asks for");
}

TEST(Safetensors, OtherFormatsAreNamed) {
  using namespace std::string_literals;
  const std::string torch =
      "model.safetensors: expected a safetensors file, found a PyTorch checkpoint (a pickle, as torch.save writes it); "
      "convert it in Python: safetensors.torch.save_file({k: v.float().contiguous() for k, v in "
      "torch.load('model.safetensors', map_location='cpu').items()}, 'weights.safetensors', metadata={'format': 'pt'})";
  EXPECT_EQ(message_of("PK\x03\x04\0\0\x08\x08\0\0archive/data.pkl\x80\x02"s), torch);
  EXPECT_EQ(message_of("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19."s), torch);
  EXPECT_EQ(message_of("PK\x03\x04\x14\0\0\0\x08\0weights.npy"s),
            "model.safetensors: expected a safetensors file, found a zip archive (.npz, .keras); save its tensors with "
            "Python's safetensors first");
  EXPECT_EQ(message_of("\x89HDF\r\n\x1a\n\0\0"s),
            "model.safetensors: expected a safetensors file, found an HDF5 file (.h5); save its tensors with Python's "
            "safetensors first");
}

// This header length looks like the first bytes of a pickle.
TEST(Safetensors, AHeaderOf640Bytes) {
  std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  header.resize(640, ' ');
  const std::string bytes = std::string("\x80\x02\0\0\0\0\0\0", 8) + header + std::string(4, '\0');
  EXPECT_EQ(SafetensorsFile::parse(bytes, "a").tensors().size(), 1u);
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

}  // namespace lockstep::checkpoint
