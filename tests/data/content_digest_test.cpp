// The hash over all samples: the same wherever they are stored, different for any changed byte.
#include "data/content_digest.hpp"

#include <gtest/gtest.h>

#include "data/pack.hpp"
#include "data/reader_support.hpp"

namespace lockstep::test {
namespace {

std::string digest_of(const DataSet& set) {
  return data::content_digest(set, [](double) { return true; }).value();
}

std::string token_digest(const std::string& path, const std::string& bytes) {
  write_file(path, bytes);
  SourceOptions options = source(SourceKind::tokens, {path});
  options.context = 4;
  return digest_of(*data::open(options));
}

TEST(ContentDigest, AFolderItsTarAndAPackedFileHaveOne) {
  const TemporaryFolder folder;
  const Members members = {{"cat/1.png", png(8, 8, 3, 1)}, {"cat/2.png", png(8, 8, 3, 2)}, {"dog/1.png", png(8, 8, 3)}};
  write_folder(folder / "set", members);
  write_tar(folder / "set.tar", members, Packing::plain);
  const auto set = data::open(source(SourceKind::images, {folder / "set"}));
  data::pack(*set, folder / "packed", {});
  const std::string digest = digest_of(*set);
  EXPECT_EQ(digest, digest_of(*data::open(source(SourceKind::images, {folder / "set.tar"}))));
  EXPECT_EQ(digest, digest_of(*data::open(source(SourceKind::packed, {folder / "packed"}))));

  write_file(folder / "set/dog/1.png", png(8, 8, 3, 3));
  EXPECT_NE(digest, digest_of(*data::open(source(SourceKind::images, {folder / "set"}))));
}

TEST(ContentDigest, LabelsAreNotInIt) {  // since the classes of a validation set are numbered like the training set's
  const TemporaryFolder folder;
  write_folder(folder / "all", {{"cat/1.png", png(8, 8, 1)}, {"dog/1.png", png(8, 8, 1, 2)}});
  write_folder(folder / "dogs", {{"dog/1.png", png(8, 8, 1, 2)}});
  const auto all = data::open(source(SourceKind::images, {folder / "all"}));
  const auto own = data::open(source(SourceKind::images, {folder / "dogs"}));
  const auto numbered_alike = data::open(source(SourceKind::images, {folder / "dogs"}), {0, &all->info()});
  ASSERT_NE(own->label(0), numbered_alike->label(0));
  EXPECT_EQ(digest_of(*own), digest_of(*numbered_alike));
}

TEST(ContentDigest, TokensThatFillNoWindowAreInIt) {
  const TemporaryFolder folder;
  std::string bytes(2 * 12, '\1');  // windows of 4 tokens: the last pairs of 11 do not fill one
  const std::string digest = token_digest(folder / "a", bytes);
  EXPECT_EQ(digest, token_digest(folder / "b", bytes));
  bytes.back() = '\2';
  EXPECT_NE(digest, token_digest(folder / "c", bytes));
}

TEST(ContentDigest, EndsWhenItIsAskedTo) {
  const TemporaryFolder folder;
  write_folder(folder / "set", {{"cat/1.png", png(8, 8, 1)}, {"dog/1.png", png(8, 8, 1)}});
  const auto set = data::open(source(SourceKind::images, {folder / "set"}));
  std::vector<double> shares;
  const auto digest = data::content_digest(*set, [&](double share) {
    shares.push_back(share);
    return share < 0.5;
  });
  EXPECT_EQ(digest, std::nullopt);
  EXPECT_EQ(shares, (std::vector<double>{0, 0.5}));
}

}  // namespace
}  // namespace lockstep::test
