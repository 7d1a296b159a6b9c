#include <gtest/gtest.h>

#include "data/reader_support.hpp"

namespace lockstep::test {
namespace {

std::string tokens(const std::vector<std::uint16_t>& values) {
  std::string out;
  for (const auto value : values) {
    out += static_cast<char>(value & 0xFF);
    out += static_cast<char>(value >> 8);
  }
  return out;
}

SourceOptions token_source(std::vector<std::string> paths, std::int64_t context) {
  auto options = source(SourceKind::tokens, std::move(paths));
  options.context = context;
  return options;
}

TEST(ReaderTokens, SeveralFilesAreOneRun) {
  const TemporaryFolder folder;
  write_file(folder / "a.bin", tokens({1, 2, 3}));
  write_file(folder / "b.bin", tokens({}));
  write_file(folder / "c.bin", tokens({40'000, 5, 6, 7}));
  const auto set = data::open(token_source({folder / "a.bin", folder / "b.bin", folder / "c.bin"}, 2));
  EXPECT_EQ(set->info().vocabulary, 40'001);
  ASSERT_EQ(set->size(), 3);
  Sample sample;
  set->read(1, sample);
  EXPECT_EQ(integers_of(sample[0].tensor), (std::vector<std::int32_t>{3, 40'000}));
  EXPECT_EQ(integers_of(sample[1].tensor), (std::vector<std::int32_t>{40'000, 5}));
}

TEST(ReaderTokens, AWindowReadsItselfOnly) {
  const TemporaryFolder folder;
  write_file(folder / "a.bin", tokens(std::vector<std::uint16_t>(1000, 3)));
  const auto set = data::open(token_source({folder / "a.bin"}, 16));
  const auto before = set->bytes_read();
  Sample sample;
  set->read(10, sample);
  EXPECT_EQ(set->bytes_read() - before, 34U);
}

TEST(ReaderTokensErrors, ExactWords) {
  const TemporaryFolder folder;
  write_file(folder / "odd.bin", "12345");
  EXPECT_EQ(without(data_error(token_source({folder / "odd.bin"}, 2)), folder.path()),
            "odd.bin: 5 bytes; tokens of 16 bits take an even number");
  write_file(folder / "short.bin", tokens({1, 2}));
  EXPECT_EQ(without(data_error(token_source({folder / "short.bin"}, 2)), folder.path()),
            "short.bin: 2 tokens; one window of context 2 takes 3");
  write_file(folder / "train.bin", tokens({1, 2, 3, 4}));
  write_file(folder / "validation.bin", tokens({1, 9, 3, 4}));
  const auto train = data::open(token_source({folder / "train.bin"}, 2));
  EXPECT_EQ(without(message_of(ExitCode::data,
                               [&] {
                                 (void)data::open(token_source({folder / "validation.bin"}, 2), {0, &train->info()});
                               }),
                    folder.path()),
            "validation.bin: token 9; the training set's are below 5");
}

}  // namespace
}  // namespace lockstep::test
