#include "run/train/library_results.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "core/digest.hpp"
#include "data/image_file.hpp"
#include "lockstep/random.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep::train {

namespace {

constexpr std::size_t kInputs = 16384, kResultDigits = 8;

/// 20 x 20 pixels, 4:2:0, quality 60.
constexpr std::string_view kJpeg =
    "ffd8ffdb0043000d090a0b0a080d0b0a0b0e0e0d0f13201513121213271c1e17202e2931302e292d2c333a4a3e333646372c2d40"
    "5741464c4e525352323e5a615a50604a51524fffdb0043010e0e0e131113261515264f352d354f4f4f4f4f4f4f4f4f4f4f4f4f4f"
    "4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4fffc00011080014001403012200021101"
    "031101ffc4001800010101010100000000000000000000000006030405ffc4002910000201030302040700000000000000000102"
    "11000304051221314114226171425291a1e1f0f1ffc4001801000301010000000000000000000000000203060105ffc400201100"
    "010402020301000000000000000000010002031104211231055161c1ffda000c03010002110311003f00f1f48c28db2a011d79ef"
    "fb155fa7e1ed50488531fcae4d3b05b824060a27f15b6a19d730c5c5b6cc8d6e00f3a297922594192446e131d7b1e63722410d01"
    "b71e90411ba77f162e8c8d66d58bad6ecf878566522e338604310785561da7d8f4a5436a26f364292418b6aa21ca4051b638201e"
    "9d694a18733c722f3b5d079c089c58f1647d5659575f16c23d8214b334f1f2db2ff72b07d0fb44f65a85ccbe09676b3708df718b"
    "33ed6305a7bc00388fad294b8b796fbf68bc68a8491dd1fd589b0aa148f89158f940e4a83d00f5a529542a79fb71b5ffd9";

// By pointers, so that the compiler computes nothing itself.
template <typename T>
struct Function {
  T (*compute)(T);
  T least, most;
};

double power(double x) {
  return ::pow(x, 0.999);
}
double remainder_of_one(double x) {
  return ::fmod(1.0, x);
}
float power_of_float(float x) {
  return ::powf(x, 0.75F);
}

constexpr std::array<Function<double>, 10> kDoubles = {{{::cos, -30, 30},
                                                        {::erfc, -5, 5},
                                                        {::exp, -40, 40},
                                                        {::exp2, -40, 40},
                                                        {::expm1, -2, 2},
                                                        {::log, 1e-9, 30},
                                                        {::log10, 1e-9, 30},
                                                        {::log2, 1e-9, 30},
                                                        {power, 1e-9, 100},
                                                        {remainder_of_one, 1e-9, 1}}};
constexpr std::array<Function<float>, 7> kFloats = {{{::erff, -4, 4},
                                                     {::expf, -40, 40},
                                                     {::expm1f, -2, 2},
                                                     {::log1pf, -0.9F, 30},
                                                     {::logf, 1e-9F, 30},
                                                     {power_of_float, 1e-9F, 100},
                                                     {::tanhf, -9, 9}}};

template <typename T, std::size_t Count>
void add(const std::array<Function<T>, Count>& functions, Sha256& hash) {
  std::vector<T> results(kInputs);
  for (const auto& function : functions) {
    RandomStream random(hash_name("math"), 0);
    for (T& result : results) {
      const double high = random.word(), low = random.word();
      const double unit = (high + low * 0x1p-32) * 0x1p-32;
      result = function.compute(static_cast<T>(function.least + unit * (function.most - function.least)));
    }
    hash.add(std::as_bytes(std::span(results)));
  }
}

}  // namespace

std::string hash_of_math() {
  Sha256 hash;
  add(kDoubles, hash);
  add(kFloats, hash);
  return hash.hex().substr(0, kResultDigits);
}

std::string hash_of_jpeg() {
  std::vector<std::byte> file(kJpeg.size() / 2);
  for (std::size_t i = 0; i < file.size(); ++i) {
    unsigned value = 0;
    std::from_chars(kJpeg.data() + 2 * i, kJpeg.data() + 2 * i + 2, value, 16);
    file[i] = static_cast<std::byte>(value);
  }
  Tensor pixels;
  data::decode_jpeg(file, 3, pixels);
  return sha256(std::as_bytes(std::span(pixels.as<std::uint8_t>()))).substr(0, kResultDigits);
}

}  // namespace lockstep::train
