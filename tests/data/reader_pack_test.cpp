#include <gtest/gtest.h>

#include "data/pack.hpp"
#include "data/reader_support.hpp"
#include "data/split.hpp"

namespace lockstep::test {
namespace {

Members animals(int count) {
  Members members;
  for (int i = 0; i < count; ++i) {
    const std::string name = std::to_string(i / 2);
    members.emplace_back((i % 2 != 0 ? "cat/" : "dog/") + name + ".png", png(16, 16, 3, i));
  }
  return members;
}

void expect_same(const DataSet& a, const DataSet& b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(a.info().digest, b.info().digest);
  EXPECT_EQ(a.info().class_names, b.info().class_names);
  EXPECT_EQ(a.info().class_counts, b.info().class_counts);
  Sample left, right;
  for (std::int64_t id = 0; id < a.size(); ++id) {
    a.read(id, left);
    b.read(id, right);
    ASSERT_EQ(left.size(), right.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
      EXPECT_EQ(left[i].name, right[i].name);
      ASSERT_EQ(left[i].tensor.spec(), right[i].tensor.spec());
      EXPECT_TRUE(std::equal(left[i].tensor.bytes(), left[i].tensor.bytes() + left[i].tensor.spec().bytes(),
                             right[i].tensor.bytes()));
    }
    EXPECT_EQ(a.name(id), b.name(id));
    EXPECT_EQ(a.label(id), b.label(id));
  }
}

TEST(Pack, TheSameSamplesNamesClassesAndDigest) {
  const TemporaryFolder folder;
  write_folder(folder / "data", animals(7));
  const auto set = data::open(source(SourceKind::images, {folder / "data"}));
  EXPECT_EQ(data::pack(*set, folder / "a.pack"), (std::vector<std::string>{folder / "a.pack"}));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.pack.part"));
  const auto packed = data::open(source(SourceKind::packed, {folder / "a.pack"}));
  EXPECT_EQ(packed->info().format, "packed (images in class folders)");
  expect_same(*set, *packed);
}

TEST(Pack, ImagesStayEncoded) {
  const TemporaryFolder folder;
  const std::string image = jpeg(200, 200, 3);
  write_folder(folder / "data", {{"a/1.jpg", image}});
  (void)data::pack(*data::open(source(SourceKind::images, {folder / "data"})), folder / "a.pack");
  EXPECT_NE(read_file(folder / "a.pack").find(image), std::string::npos);
  EXPECT_LT(std::filesystem::file_size(folder / "a.pack"), image.size() + 1000);
}

TEST(Pack, SegmentsAreFoundBesideTheFirst) {
  const TemporaryFolder folder;
  write_folder(folder / "data", animals(9));
  const auto set = data::open(source(SourceKind::images, {folder / "data"}));
  const auto paths = data::pack(*set, folder / "a.pack", {300, {}});
  ASSERT_GT(paths.size(), 2U);
  EXPECT_EQ(paths[1], folder / "a.pack.1");
  expect_same(*set, *data::open(source(SourceKind::packed, {folder / "a.pack"})));
  expect_same(*set, *data::open(source(SourceKind::packed, paths)));  // as from a glob
}

TEST(Pack, PairsAndRawImages) {
  const TemporaryFolder folder;
  auto digits = source(SourceKind::digits, {});
  digits.count = 5;
  digits.pairs = true;
  const auto set = data::open(digits);
  (void)data::pack(*set, folder / "a.pack");
  expect_same(*set, *data::open(source(SourceKind::packed, {folder / "a.pack"})));
}

TEST(Pack, APartOfASetPacks) {
  const TemporaryFolder folder;
  write_folder(folder / "data", animals(10));
  const auto parts = data::split(data::open(source(SourceKind::images, {folder / "data"})), {0.3, "", 1});
  (void)data::pack(*parts.validation, folder / "v.pack");
  expect_same(*parts.validation, *data::open(source(SourceKind::packed, {folder / "v.pack"})));
}

TEST(Pack, ClassesAreTheTrainingSets) {
  const TemporaryFolder folder;
  write_folder(folder / "data", {{"dog/1.png", png(4, 4, 3)}});
  (void)data::pack(*data::open(source(SourceKind::images, {folder / "data"})), folder / "a.pack");
  DataSetInfo train;
  train.class_names = {"cat", "dog"};
  const auto set = data::open(source(SourceKind::packed, {folder / "a.pack"}), {0, &train});
  Sample sample;
  set->read(0, sample);
  EXPECT_EQ(integers_of(sample[1].tensor), (std::vector<std::int32_t>{1}));
  EXPECT_EQ(set->info().class_counts, (std::vector<std::int64_t>{0, 1}));
}

TEST(Pack, ASampleIsOneRead) {
  const TemporaryFolder folder;
  const std::string image = png(64, 64, 3);
  write_folder(folder / "data", {{"a/1.png", image}, {"a/2.png", image}, {"a/3.png", image}});
  (void)data::pack(*data::open(source(SourceKind::images, {folder / "data"})), folder / "a.pack");
  const auto set = data::open(source(SourceKind::packed, {folder / "a.pack"}));
  const auto before = set->bytes_read();
  Sample sample;
  set->read(1, sample);
  EXPECT_EQ(set->bytes_read() - before, image.size() + 5);  // and the label: rank 0, 4 bytes
}

// Bad input.

class PackErrors : public testing::Test {
 protected:
  void SetUp() override {
    write_folder(folder_ / "data", animals(4));
    (void)data::pack(*data::open(source(SourceKind::images, {folder_ / "data"})), folder_ / "a.pack");
    bytes_ = read_file(folder_ / "a.pack");
  }
  std::string error_of(const std::string& contents) {
    write_file(folder_ / "b.pack", contents);
    return without(data_error(source(SourceKind::packed, {folder_ / "b.pack"})), folder_.path());
  }
  std::string flipped(std::size_t at) {
    std::string out = bytes_;
    out.at(at) = static_cast<char>(out.at(at) ^ 0x10);
    return out;
  }

  TemporaryFolder folder_;
  std::string bytes_;
};

TEST_F(PackErrors, AFlippedByteInARecord) {
  write_file(folder_ / "b.pack", flipped(40));
  const auto set = data::open(source(SourceKind::packed, {folder_ / "b.pack"}));
  Sample sample;
  EXPECT_EQ(without(message_of(ExitCode::data, [&] { set->read(0, sample); }), folder_.path()),
            "b.pack: cat/0.png: the checksum differs: the file is damaged");
  set->read(1, sample);  // the others are intact
}

TEST_F(PackErrors, ExactWords) {
  EXPECT_EQ(error_of("hello"), "b.pack: not a file that `lockstep data pack` wrote");
  EXPECT_EQ(error_of(""), "b.pack: not a file that `lockstep data pack` wrote");
  EXPECT_EQ(error_of(flipped(17)), "b.pack: damaged packed file: the header's checksum differs");
  EXPECT_EQ(error_of(bytes_.substr(0, 40)), "b.pack: truncated packed file: no end mark");
  EXPECT_EQ(error_of(bytes_.substr(0, bytes_.size() - 1)), "b.pack: truncated packed file: no end mark");
  EXPECT_EQ(error_of(flipped(bytes_.size() - 50)), "b.pack: damaged packed file: the index's checksum differs");
  EXPECT_EQ(error_of(flipped(bytes_.size() - 30)),
            "b.pack: damaged packed file: its parts do not add up to its length");
}

TEST_F(PackErrors, EveryFlippedByteIsNoticedOrHarmless) {
  const auto whole = data::open(source(SourceKind::packed, {folder_ / "a.pack"}));
  for (std::size_t at = 0; at < bytes_.size(); at += 3) {
    write_file(folder_ / "b.pack", flipped(at));
    bool noticed = false;
    try {
      const auto set = data::open(source(SourceKind::packed, {folder_ / "b.pack"}));
      Sample sample;
      for (std::int64_t id = 0; id < set->size(); ++id) set->read(id, sample);
    } catch (const Error& error) {
      noticed = error.code() == ExitCode::data;
    }
    const bool padding = at >= 28 && at < 32;
    EXPECT_NE(noticed, padding) << at;
  }
}

TEST_F(PackErrors, SegmentsThatDoNotBelong) {
  const auto set = data::open(source(SourceKind::images, {folder_ / "data"}));
  const auto paths = data::pack(*set, folder_ / "s.pack", {300, {}});
  ASSERT_GT(paths.size(), 1U);
  EXPECT_EQ(without(data_error(source(SourceKind::packed, {paths[1]})), folder_.path()).substr(0, 23),
            "s.pack.1: segment 2 of ");
  std::filesystem::remove(paths[1]);
  EXPECT_EQ(without(data_error(source(SourceKind::packed, {paths[0]})), folder_.path()),
            "s.pack.1: No such file or directory");
  std::filesystem::copy(folder_ / "a.pack", paths[1]);
  EXPECT_EQ(without(data_error(source(SourceKind::packed, {paths[0]})), folder_.path()),
            without("s.pack.1: belongs to another pack than " + paths[0], folder_.path()));
}

TEST_F(PackErrors, NothingIsOverwritten) {
  const auto set = data::open(source(SourceKind::images, {folder_ / "data"}));
  EXPECT_EQ(
      without(message_of(ExitCode::cannot_create, [&] { (void)data::pack(*set, folder_ / "a.pack"); }), folder_.path()),
      "a.pack: exists already; remove it, or choose another name");
}

TEST_F(PackErrors, TextIsNotPacked) {
  write_file(folder_ / "a.txt", "some text");
  auto options = source(SourceKind::text, {folder_ / "a.txt"});
  options.context = 2;
  const auto set = data::open(options);
  EXPECT_EQ(without(message_of(ExitCode::usage, [&] { (void)data::pack(*set, folder_ / "t.pack"); }), folder_.path()),
            "a.txt: text and token files are not packed: a rank reads only its windows of a token file");
}

}  // namespace
}  // namespace lockstep::test
