#include <gtest/gtest.h>

#include "data/reader_support.hpp"

namespace lockstep::test {
namespace {

std::string idx(const std::vector<std::uint32_t>& shape, const std::string& bytes) {
  std::string out{'\0', '\0', '\x08', static_cast<char>(shape.size())};
  for (const auto size : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>((size >> shift) & 0xFF);
  }
  return out + bytes;
}

/// Three images of 2 x 2 and their labels.
std::string image_file() {
  return idx({3, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
}
std::string label_file() {
  return idx({3}, {1, 0, 3});
}

void expect_the_three(const DataSet& set) {
  ASSERT_EQ(set.size(), 3);
  EXPECT_EQ(set.info().features[0].spec, (TensorSpec{DType::u8, {2, 2, 1}}));
  EXPECT_EQ(set.info().class_counts, (std::vector<std::int64_t>{1, 1, 0, 1}));
  Sample sample;
  set.read(1, sample);
  EXPECT_EQ(bytes_of(sample[0].tensor), (std::vector<std::uint8_t>{5, 6, 7, 8}));
  EXPECT_EQ(integers_of(sample[1].tensor), (std::vector<std::int32_t>{0}));
  EXPECT_EQ(set.label(2), 3);
}

TEST(ReaderIdx, LabelsAreFoundBesideTheImages) {
  const TemporaryFolder folder;
  write_file(folder / "train-images-idx3-ubyte", image_file());
  write_file(folder / "train-labels-idx1-ubyte", label_file());
  expect_the_three(*data::open(source(SourceKind::idx, {folder / "train-images-idx3-ubyte"})));
  expect_the_three(*data::open(source(SourceKind::idx, {folder.path()})));
}

TEST(ReaderIdx, AFolderStandsForTheImagesOfAPart) {
  const TemporaryFolder folder;
  write_file(folder / "train-images-idx3-ubyte", image_file());
  write_file(folder / "train-labels-idx1-ubyte", label_file());
  write_file(folder / "t10k-images-idx3-ubyte", idx({1, 2, 2}, {9, 9, 9, 9}));
  write_file(folder / "t10k-labels-idx1-ubyte", idx({1}, {1}));
  auto options = source(SourceKind::idx, {folder.path()});
  const auto train = data::open(options);
  EXPECT_EQ(train->size(), 3);
  options.part = SourcePart::test;
  EXPECT_EQ(data::open(options, {.like = &train->info()})->size(), 1);
  options.part = SourcePart::train;
  EXPECT_EQ(data::open(options, {.like = &train->info()})->size(), 3);
}

TEST(ReaderIdx, GzipIsTheSameSet) {
  const TemporaryFolder folder;
  write_file(folder / "a/train-images-idx3-ubyte", image_file());
  write_file(folder / "a/train-labels-idx1-ubyte", label_file());
  write_file(folder / "b/train-images-idx3-ubyte.gz", gzip(image_file()));
  write_file(folder / "b/train-labels-idx1-ubyte.gz", gzip(label_file()));
  const auto plain = data::open(source(SourceKind::idx, {folder / "a"})),
             packed = data::open(source(SourceKind::idx, {folder / "b"}));
  expect_the_three(*packed);
  EXPECT_EQ(plain->info().digest, packed->info().digest);
}

TEST(ReaderIdx, LabelsMayBeNamedOrStandInTheGlob) {
  const TemporaryFolder folder;
  write_file(folder / "x", image_file());
  write_file(folder / "y", label_file());
  auto named = source(SourceKind::idx, {folder / "x"});
  named.labels = folder / "y";
  expect_the_three(*data::open(named));
  expect_the_three(*data::open(source(SourceKind::idx, {folder / "y", folder / "x"})));
}

TEST(ReaderIdx, SegmentsFollowEachOther) {
  const TemporaryFolder folder;
  for (const std::string name : {"1", "2"}) {
    write_file(folder / (name + "-images-idx3-ubyte"), image_file());
    write_file(folder / (name + "-labels-idx1-ubyte"), label_file());
  }
  const auto set =
      data::open(source(SourceKind::idx, {folder / "1-images-idx3-ubyte", folder / "2-images-idx3-ubyte"}));
  ASSERT_EQ(set->size(), 6);
  Sample sample;
  set->read(5, sample);
  EXPECT_EQ(bytes_of(sample[0].tensor), (std::vector<std::uint8_t>{9, 10, 11, 12}));
}

TEST(ReaderIdx, ASampleIsOneRead) {
  const TemporaryFolder folder;
  write_file(folder / "train-images-idx3-ubyte", image_file());
  write_file(folder / "train-labels-idx1-ubyte", label_file());
  const auto set = data::open(source(SourceKind::idx, {folder.path()}));
  const auto before = set->bytes_read();
  Sample sample;
  set->read(1, sample);
  EXPECT_EQ(set->bytes_read() - before, 4U);
}

std::string idx_error(const std::string& image_bytes, const std::string& label_bytes) {
  const TemporaryFolder folder;
  write_file(folder / "images", image_bytes);
  if (!label_bytes.empty()) write_file(folder / "labels", label_bytes);
  return without(data_error(source(SourceKind::idx, {folder / "images"})), folder.path());
}

TEST(ReaderIdxErrors, ExactWords) {
  EXPECT_EQ(idx_error("abc", label_file()), "images: 3 bytes; an IDX file begins with a magic number of 4");
  EXPECT_EQ(idx_error("PK\x03\x04 something else", label_file()),
            "images: begins with 50 4b 03 04; an IDX file of unsigned bytes begins with 00 00 08 and 01 ... 04");
  EXPECT_EQ(idx_error(image_file().substr(0, 20), label_file()),
            "images: 20 bytes, but its header says [3, 2, 2] and so 28 bytes");
  EXPECT_EQ(idx_error(image_file().substr(0, 10), label_file()), "images: 10 bytes; its header takes 16");
  EXPECT_EQ(idx_error(image_file(), idx({2}, {1, 2})), "images holds 3 images, but labels holds 2 labels");
  EXPECT_EQ(idx_error(image_file(), image_file()), "labels: shape [3, 2, 2]; expected labels [count]");
  EXPECT_EQ(idx_error(idx({2, 2}, {1, 2, 3, 4}), label_file()),
            "images: shape [2, 2]; expected images [count, height, width] or [count, height, width, 1 or 3]");
  EXPECT_EQ(idx_error(image_file(), ""),
            "images: no labels beside it; looked for labels and labels.gz. Name them with "
            "`labels:`");
  EXPECT_EQ(idx_error(gzip(image_file()).substr(0, 25), label_file()), "images: truncated gzip file");
  EXPECT_EQ(idx_error(idx({4'000'000'000, 4'000'000'000, 4'000'000'000}, "abc"), label_file()).substr(0, 60),
            "images: 19 bytes, but its header says [4000000000, 400000000");
}

TEST(ReaderIdxErrors, AFolderWithoutImages) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "mnist");
  EXPECT_EQ(without(data_error(source(SourceKind::idx, {folder / "mnist"})), folder.path()),
            "mnist: holds no train-images-idx3-ubyte, nor with .gz");
  auto options = source(SourceKind::idx, {folder / "mnist"});
  options.part = SourcePart::test;
  EXPECT_EQ(without(data_error(options), folder.path()), "mnist: holds no t10k-images-idx3-ubyte, nor with .gz");
}

}  // namespace
}  // namespace lockstep::test
