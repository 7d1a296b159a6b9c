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

template <class Number>
std::string numbers(const std::vector<std::int64_t>& values) {
  const std::vector<Number> typed(values.begin(), values.end());
  return {reinterpret_cast<const char*>(typed.data()), typed.size() * sizeof(Number)};
}

std::vector<std::int64_t> some_tokens(std::int64_t vocabulary) {
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < 200; ++i) tokens.push_back((i * i + 3 * i) % vocabulary);
  return tokens;
}

SourceOptions typed(const std::string& path, const std::string& type) {
  auto options = token_source({path}, 4);
  if (!type.empty()) options.attributes.set("dtype", type);
  return options;
}

TEST(ReaderTokens, EachTypeIsReadAsItIs) {
  const TemporaryFolder folder;
  const auto values = some_tokens(100'003);
  write_file(folder / "uint32", numbers<std::uint32_t>(values));
  write_file(folder / "int32", numbers<std::int32_t>(values));
  write_file(folder / "int64", numbers<std::int64_t>(values));
  const auto reference = data::open(typed(folder / "uint32", "uint32"));
  for (const std::string type : {"uint32", "int32", "int64"}) {
    const auto set = data::open(typed(folder / type, type));
    EXPECT_EQ(set->info().digest, reference->info().digest) << type;
    Sample sample;
    set->read(20, sample);
    EXPECT_EQ(integers_of(sample[0].tensor), (std::vector<std::int32_t>(values.begin() + 80, values.begin() + 84)))
        << type;
  }
}

TEST(ReaderTokens, NumbersOfAnotherTypeAreRefused) {
  const TemporaryFolder folder;
  const auto problem = [&](const std::string& contents, const std::string& type) {
    write_file(folder / "a.bin", contents);
    return without(data_error(typed(folder / "a.bin", type)), folder.path());
  };
  for (const std::int64_t vocabulary : {50, 30'000, 150'000}) {
    const auto values = some_tokens(vocabulary);
    EXPECT_EQ(
        problem(numbers<std::uint32_t>(values), ""),
        "a.bin: read as uint16, every second number is nearly 0, as if they were the upper halves of larger ones; "
        "set `dtype: uint32`, or `dtype: uint16` if they are these");
    EXPECT_EQ(
        problem(numbers<std::int64_t>(values), ""),
        "a.bin: read as uint16, three of four numbers are nearly 0, as if they were the upper halves of larger ones; "
        "set `dtype: int64`, or `dtype: uint16` if they are these");
    EXPECT_EQ(
        problem(numbers<std::int64_t>(values), "uint32"),
        "a.bin: read as uint32, every second number is nearly 0, as if they were the upper halves of larger ones; "
        "set `dtype: int64`");
  }
  write_file(folder / "a.bin", numbers<std::uint32_t>(some_tokens(50)));
  EXPECT_EQ(data::open(typed(folder / "a.bin", "uint16"))->info().vocabulary, 49);  // who says so is believed
  EXPECT_EQ(problem(numbers<std::int64_t>({1, 2, -100, 4, 5}), "int64"),
            "a.bin: read as int64, number 2 is -100; expected tokens, from 0 to 16777215; set `dtype` to the type that "
            "they were written in");
  EXPECT_EQ(problem(numbers<std::uint16_t>(some_tokens(50'000)), "uint32").substr(0, 31),
            "a.bin: read as uint32, number 7");
  EXPECT_EQ(problem("\x93NUMPY\1" + std::string(100, '\0'), ""),
            "a.bin: expected numbers and nothing else, found a NumPy file; write the numbers alone, "
            "`numpy.load(FILE).tofile(NEW)`, and set `dtype`");
  const auto looks_like = [](const std::string& found) {
    return "a.bin: read as uint16, found what looks like " + found +
           "; write the tokens as uint16, little-endian, or set `dtype: uint16` if they are these";
  };
  for (const std::int64_t vocabulary : {50, 30'000}) {
    const auto values = some_tokens(vocabulary);
    EXPECT_EQ(problem(numbers<float>(values), ""), looks_like("float32 numbers"));
    EXPECT_EQ(problem(numbers<double>(values), ""), looks_like("float64 numbers"));
    std::string swapped = numbers<std::uint32_t>(values);
    for (std::size_t at = 0; at < swapped.size(); at += 4) {
      std::reverse(swapped.begin() + static_cast<std::ptrdiff_t>(at),
                   swapped.begin() + static_cast<std::ptrdiff_t>(at + 4));
    }
    EXPECT_EQ(problem(swapped, ""), looks_like("uint32 numbers with the highest byte first"));
    std::vector<std::int64_t> hidden = values;
    for (std::size_t i = 0; i < hidden.size(); i += 7) hidden[i] = -100;
    EXPECT_EQ(problem(numbers<std::int32_t>(hidden), ""), looks_like("int32 numbers, some of them negative"));
  }
  std::string swapped = numbers<std::uint16_t>(some_tokens(1000));
  for (std::size_t at = 0; at < swapped.size(); at += 2) std::swap(swapped[at], swapped[at + 1]);
  EXPECT_EQ(problem(swapped, ""), looks_like("uint16 numbers with the highest byte first"));
  std::string words;
  while (words.size() < 200) words += "to be or not to be, ";
  EXPECT_EQ(problem(words, ""), looks_like("numbers of 8 bits, or text"));
  EXPECT_EQ(problem("\x88\xD8\x34\x01" + std::string(1020, '\0'), ""),
            "a.bin: expected numbers and nothing else, found a file of llm.c with a header; remove it: `tail -c +1025 "
            "FILE > NEW`");
  for (const std::int64_t vocabulary : {4, 300, 50'000}) {
    write_file(folder / "a.bin", numbers<std::uint16_t>(some_tokens(vocabulary)));
    EXPECT_LE(data::open(typed(folder / "a.bin", ""))->info().vocabulary, vocabulary);
  }
  EXPECT_EQ(problem(std::string(12, '\0'), "int64"), "a.bin: 12 bytes; tokens of 64 bits take a multiple of 8");
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
