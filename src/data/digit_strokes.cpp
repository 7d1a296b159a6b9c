// The order of styles and points is part of the digits' definition: changing it changes their bits.
#include "data/digit_strokes.hpp"

#include <array>

namespace lockstep::data {

namespace {

constexpr bool kCurve = true, kLines = false;

using Styles = std::vector<DigitStyle>;

Styles zeros() {
  return {
      {{kCurve, {{50, 0}, {15, 18}, {5, 50}, {15, 82}, {50, 100}, {85, 82}, {95, 50}, {85, 18}, {50, 0}}}},
      {{kCurve, {{65, 5}, {30, 5}, {10, 45}, {25, 90}, {55, 98}, {88, 60}, {80, 15}, {55, 2}, {40, 12}}}},
  };
}

Styles ones() {
  return {
      {{kLines, {{50, 0}, {50, 100}}}},
      {{kLines, {{30, 22}, {55, 0}, {55, 100}}}},
      {{kLines, {{28, 22}, {55, 0}, {55, 100}}}, {kLines, {{28, 100}, {82, 100}}}},
  };
}

Styles twos() {
  return {
      {{kCurve, {{12, 25}, {30, 3}, {65, 2}, {85, 25}, {70, 52}, {35, 80}, {8, 100}}}, {kLines, {{8, 100}, {92, 100}}}},
      {{kCurve, {{15, 22}, {40, 0}, {78, 12}, {75, 45}, {45, 75}, {15, 97}, {10, 85}, {30, 82}, {60, 95}, {92, 92}}}},
  };
}

Styles threes() {
  return {
      {{kCurve, {{12, 12}, {45, 0}, {80, 15}, {72, 38}, {42, 48}}},
       {kCurve, {{42, 48}, {80, 58}, {88, 80}, {50, 100}, {10, 88}}}},
      {{kLines, {{15, 2}, {80, 2}, {42, 42}}}, {kCurve, {{42, 42}, {82, 55}, {86, 82}, {50, 100}, {10, 88}}}},
  };
}

Styles fours() {
  return {
      {{kLines, {{20, 0}, {12, 55}, {90, 60}}}, {kLines, {{68, 20}, {68, 100}}}},
      {{kLines, {{65, 0}, {8, 65}, {95, 65}}}, {kLines, {{65, 0}, {65, 100}}}},
      {{kCurve, {{15, 5}, {12, 40}, {35, 54}, {76, 45}}}, {kCurve, {{80, 0}, {76, 50}, {70, 100}}}},
  };
}

Styles fives() {
  return {
      {{kLines, {{80, 2}, {22, 2}, {18, 42}}}, {kCurve, {{18, 42}, {55, 35}, {88, 60}, {75, 92}, {40, 100}, {8, 88}}}},
      {{kCurve, {{85, 5}, {40, 5}, {20, 25}, {35, 45}, {75, 60}, {75, 90}, {35, 100}, {10, 88}}}},
  };
}

Styles sixes() {
  return {
      {{kCurve, {{70, 2}, {30, 25}, {10, 65}, {25, 95}, {60, 98}, {85, 75}, {65, 55}, {30, 58}, {12, 75}}}},
      {{kCurve, {{45, 0}, {15, 50}, {12, 80}, {45, 100}, {80, 85}, {75, 60}, {45, 52}, {18, 70}}}},
  };
}

Styles sevens() {
  return {
      {{kLines, {{8, 5}, {90, 5}, {40, 100}}}},
      {{kLines, {{8, 5}, {90, 5}, {42, 100}}}, {kLines, {{35, 52}, {82, 50}}}},
      {{kLines, {{8, 24}, {10, 5}, {88, 5}}}, {kCurve, {{88, 5}, {60, 45}, {45, 100}}}},
  };
}

Styles eights() {
  return {
      {{kCurve,
        {{75, 12},
         {45, 0},
         {18, 18},
         {40, 45},
         {78, 68},
         {75, 95},
         {40, 100},
         {15, 82},
         {30, 58},
         {65, 38},
         {80, 15}}}},
      {{kCurve, {{50, 0}, {22, 12}, {25, 38}, {50, 48}, {76, 36}, {78, 12}, {50, 0}}},
       {kCurve, {{50, 48}, {15, 65}, {15, 90}, {50, 100}, {86, 90}, {85, 65}, {50, 48}}}},
  };
}

Styles nines() {
  return {
      {{kCurve, {{80, 22}, {50, 0}, {18, 18}, {22, 45}, {55, 50}, {80, 25}}},
       {kCurve, {{82, 12}, {80, 60}, {70, 100}}}},
      {{kCurve, {{82, 20}, {50, 0}, {15, 22}, {25, 48}, {60, 48}, {82, 22}, {84, 65}, {65, 95}, {25, 98}}}},
  };
}

}  // namespace

std::span<const DigitStyle> digit_styles(int digit) {
  static const std::array<Styles, 10> all{zeros(), ones(),  twos(),   threes(), fours(),
                                          fives(), sixes(), sevens(), eights(), nines()};
  return all.at(digit);
}

}  // namespace lockstep::data
