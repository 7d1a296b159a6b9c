#include <gtest/gtest.h>

#include "data/reader_support.hpp"

namespace lockstep::test {
namespace {

/// One record: labels, then planes filled with value, value + 1 and value + 2.
std::string record(const std::string& labels, int value) {
  std::string out = labels;
  for (int c = 0; c < 3; ++c) out += std::string(1024, static_cast<char>(value + c));
  return out;
}

Members official() {
  return {{"cifar-10-batches-bin/", ""},
          {"cifar-10-batches-bin/batches.meta.txt",
           "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n"},
          {"cifar-10-batches-bin/data_batch_1.bin", record({3}, 10) + record({9}, 20)},
          {"cifar-10-batches-bin/data_batch_2.bin", record({1}, 30)},
          {"cifar-10-batches-bin/readme.html", "<html>"},
          {"cifar-10-batches-bin/test_batch.bin", record({5}, 40)}};
}

TEST(ReaderCifar, TheArchiveAsItIsDownloaded) {
  const TemporaryFolder folder;
  write_tar(folder / "cifar-10-binary.tar.gz", official(), Packing::gzip);
  const auto set = data::open(source(SourceKind::cifar, {folder / "cifar-10-binary.tar.gz"}));
  ASSERT_EQ(set->size(), 3);
  EXPECT_EQ(set->info().format, "CIFAR-10 binary");
  EXPECT_EQ(set->info().class_names.at(9), "truck");
  EXPECT_EQ(set->info().class_counts, (std::vector<std::int64_t>{0, 1, 0, 1, 0, 0, 0, 0, 0, 1}));
  Sample sample;
  set->read(2, sample);
  EXPECT_EQ(sample[0].tensor.shape(), (Shape{32, 32, 3}));
  const auto pixels = bytes_of(sample[0].tensor);
  for (std::size_t i = 0; i < pixels.size(); ++i) ASSERT_EQ(pixels[i], 30 + i % 3);
  EXPECT_EQ(set->label(2), 1);
}

TEST(ReaderCifar, TheArchiveStandsForTheBatchesOfAPart) {
  const TemporaryFolder folder;
  write_tar(folder / "cifar-10-binary.tar.gz", official(), Packing::gzip);
  write_folder(folder.path(), official());
  for (const std::string name : {"cifar-10-binary.tar.gz", "cifar-10-batches-bin"}) {
    auto options = source(SourceKind::cifar, {folder / name});
    const auto train = data::open(options);
    EXPECT_EQ(train->size(), 3) << name;
    options.part = SourcePart::test;
    const auto test = data::open(options, {.like = &train->info()});
    ASSERT_EQ(test->size(), 1) << name;
    EXPECT_EQ(test->label(0), 5);
    options.part = SourcePart::train;
    EXPECT_EQ(data::open(options, {.like = &train->info()})->size(), 3);
  }
}

TEST(ReaderCifar, APathMayGoOnIntoTheArchive) {
  const TemporaryFolder folder;
  write_tar(folder / "cifar-10-binary.tar.gz", official(), Packing::gzip);
  const auto set = data::open(source(SourceKind::cifar, {folder / "cifar-10-binary.tar.gz/test_batch.bin"}));
  ASSERT_EQ(set->size(), 1);
  EXPECT_EQ(set->label(0), 5);
}

TEST(ReaderCifar, FolderTarAndFilesAreTheSameSet) {
  const TemporaryFolder folder;
  write_tar(folder / "a.tar.gz", official(), Packing::gzip);
  write_tar(folder / "a.tar", official(), Packing::plain);
  write_folder(folder.path(), official());
  const auto reference = data::open(source(SourceKind::cifar, {folder / "a.tar.gz"}));
  const std::vector<std::vector<std::string>> others{
      {folder / "a.tar"},
      {folder / "cifar-10-batches-bin"},
      {folder / "cifar-10-batches-bin/data_batch_1.bin", folder / "cifar-10-batches-bin/data_batch_2.bin"}};
  for (const auto& paths : others) {
    const auto set = data::open(source(SourceKind::cifar, paths));
    EXPECT_EQ(set->info().digest, reference->info().digest) << paths[0];
    EXPECT_EQ(set->info().class_names, reference->info().class_names) << paths[0];
  }
}

TEST(ReaderCifar, HundredHasFineLabels) {
  const TemporaryFolder folder;
  write_file(folder / "train.bin", record({7, 42}, 1) + record({7, 99}, 2));
  const auto set = data::open(source(SourceKind::cifar, {folder / "train.bin"}));
  EXPECT_EQ(set->info().format, "CIFAR-100 binary");
  EXPECT_EQ(set->info().class_names.size(), 100U);
  EXPECT_EQ(set->label(1), 99);
}

std::string cifar_error(const std::string& name, const std::string& contents) {
  const TemporaryFolder folder;
  write_file(folder / name, contents);
  return without(data_error(source(SourceKind::cifar, {folder / name})), folder.path());
}

TEST(ReaderCifarErrors, ExactWords) {
  EXPECT_EQ(cifar_error("data_batch_1.bin", record({3}, 10).substr(1)),
            "data_batch_1.bin: 3072 bytes; expected a multiple of 3073 (CIFAR-10) or 3074 (CIFAR-100)");
  EXPECT_EQ(cifar_error("data_batch_1.bin", ""),
            "data_batch_1.bin: 0 bytes; expected a multiple of 3073 (CIFAR-10) or 3074 (CIFAR-100)");
  EXPECT_EQ(cifar_error("data_batch_1.bin", record({3}, 10) + record({10}, 10)),
            "data_batch_1.bin: sample 1 has label 10; expected 0 ... 9");
}

TEST(ReaderCifarErrors, NothingThere) {
  const TemporaryFolder folder;
  write_tar(folder / "a.tar", {{"x/readme.txt", "nothing"}}, Packing::plain);
  EXPECT_EQ(without(data_error(source(SourceKind::cifar, {folder / "a.tar"})), folder.path()),
            "a.tar: holds no data_batch_*.bin or train.bin");
  auto options = source(SourceKind::cifar, {folder / "a.tar"});
  options.part = SourcePart::test;
  EXPECT_EQ(without(data_error(options), folder.path()), "a.tar: holds no test_batch.bin or test.bin");
  EXPECT_EQ(without(data_error(source(SourceKind::cifar, {folder / "a.tar/data_batch_9.bin"})), folder.path()),
            "a.tar: holds no data_batch_9.bin");
  EXPECT_EQ(without(data_error(source(SourceKind::cifar, {folder / "none.bin"})), folder.path()),
            "none.bin: No such file or directory");
}

}  // namespace
}  // namespace lockstep::test
