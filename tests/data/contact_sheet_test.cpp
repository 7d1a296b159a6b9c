#include "data/contact_sheet.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>

#include "data/digits.hpp"
#include "data/fake_data.hpp"
#include "data/image_file.hpp"

namespace lockstep::data {

namespace {

Pipeline plain(const DataSet& set) {
  return {set.info().features, {}, built_in_augmentations()};
}

/// Writes a sheet and reads it back.
Tensor sheet_of(const DataSet& set, const ContactSheetOptions& options) {
  const std::string path = testing::TempDir() + "lockstep-sheet-" + std::to_string(getpid()) + ".png";
  write_contact_sheet(path, set, plain(set), options);
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::remove(path.c_str());
  Tensor picture;
  decode_png(std::as_bytes(std::span(bytes)), 3, picture);
  return picture;
}

}  // namespace

TEST(ContactSheet, ShowsSamplesAndLabels) {
  const auto set = make_digits(10);
  const Tensor picture = sheet_of(*set, {.columns = 4, .rows = 2, .cell = 56});
  // 28 pixels, enlarged twice, a gap of 4; below, 7 dots of text and two gaps.
  EXPECT_EQ(picture.shape(), (Shape{2 * (56 + 15) + 4, 4 * 60 + 4, 3}));
  const auto at = [&](std::int64_t y, std::int64_t x) {
    return picture.as<std::uint8_t>()[static_cast<std::size_t>((y * picture.shape()[1] + x) * 3)];
  };
  Sample sample;
  set->read(2, sample);  // the third of eight out of ten
  const auto pixels = sample[0].tensor.as<std::uint8_t>();
  for (std::int64_t y = 0; y < 28; ++y) {
    for (std::int64_t x = 0; x < 28; ++x) {
      EXPECT_EQ(at(4 + 2 * y + 1, 4 + 2 * 60 + 2 * x), pixels[static_cast<std::size_t>(28 * y + x)]);
    }
  }
  const char label = static_cast<char>('0' + set->label(2));
  for (std::int64_t y = 0; y < kGlyphHeight; ++y) {
    for (std::int64_t x = 0; x < kGlyphWidth; ++x) {
      EXPECT_EQ(at(4 + 56 + 2 + y, 4 + 2 * 60 + x) < 128, glyph_dot(label, y, x));
    }
  }
}

TEST(ContactSheet, PutsTwoImagesSideBySide) {
  const auto set = make_digits(3, 0, {.pairs = true});
  EXPECT_EQ(sheet_of(*set, {.columns = 3, .rows = 1, .cell = 57}).shape(), (Shape{28 + 15 + 4, 3 * (57 + 4) + 4, 3}));
}

TEST(ContactSheet, FontKnowsSmallLettersAndShowsABoxForOthers) {
  bool same = true, box = true;
  for (std::int64_t y = 0; y < kGlyphHeight; ++y) {
    for (std::int64_t x = 0; x < kGlyphWidth; ++x) {
      same = same && glyph_dot('q', y, x) == glyph_dot('Q', y, x);
      const bool edge = y == 0 || x == 0 || y == kGlyphHeight - 1 || x == kGlyphWidth - 1;
      box = box && glyph_dot('~', y, x) == edge;
    }
  }
  EXPECT_TRUE(same);
  EXPECT_TRUE(box);
}

TEST(ContactSheet, SaysWhyItCannot) {
  const CountingSet set(3);
  try {
    write_contact_sheet("/nowhere/at/all.png", set, plain(set));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::cannot_create);
    EXPECT_EQ(std::string(error.what()).rfind("/nowhere/at/all.png: cannot write the picture: ", 0), 0U)
        << error.what();
  }
}

}  // namespace lockstep::data
