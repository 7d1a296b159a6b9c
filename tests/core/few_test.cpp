#include "core/words.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::test {
namespace {

std::vector<std::string> letters(char last) {
  std::vector<std::string> all;
  for (char letter = 'a'; letter <= last; ++letter) all.emplace_back(1, letter);
  return all;
}

}  // namespace

TEST(Few, TheFirstOfMany) {
  EXPECT_EQ(few_of({}), "");
  EXPECT_EQ(few_of(letters('c')), "a, b, c");
  EXPECT_EQ(few_of(letters('d')), "a, b, c and 1 more");
  EXPECT_EQ(few_of(letters('d'), 2, "; "), "a; b; and 2 more");
}

TEST(Few, WhereTwoListsDiffer) {
  EXPECT_EQ(both_of({"a", "b"}, {"b", "a"}), "a, b, found b, a");
  auto other = letters('z');
  other[24] = "Y";
  EXPECT_EQ(both_of(letters('z'), other), "a, b, c and 23 more, of which number 25 is y, found Y");
  EXPECT_EQ(both_of(letters('z'), letters('x')), "a, b, c and 23 more, of which number 25 is y, found nothing");
  EXPECT_EQ(both_of(letters('x'), letters('z')), "a, b, c and 21 more, of which number 25 is not there, found y");
}

}  // namespace lockstep::test
