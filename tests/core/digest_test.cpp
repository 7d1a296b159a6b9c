#include "core/digest.hpp"

#include <gtest/gtest.h>

namespace lockstep {

// The examples of FIPS 180-4.
TEST(Sha256, MatchesKnownAnswers) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, PiecesGiveTheSameAsTheWhole) {
  Sha256 pieces;
  pieces.add("a");
  pieces.add("");
  pieces.add("bc");
  EXPECT_EQ(pieces.hex(), sha256("abc"));
}

}  // namespace lockstep
