// PNG and JPEG. The output has the size that the header claims, with one channel and with three.
#include "data/image_file.hpp"
#include "fuzz/support.hpp"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::int64_t kMaxPixels = std::int64_t{1} << 20;  // lockstep's own limit takes seconds to fill
  const auto bytes = std::as_bytes(std::span(data, size));
  data::ImageHeader header;
  if (!fuzz::accepts([&] { header = data::image_header(bytes); })) return 0;
  fuzz::require(header.size.height > 0 && header.size.width > 0, "an image has pixels");
  if (header.size.height * header.size.width > kMaxPixels) return 0;
  for (const std::int64_t channels : {1, 3}) {
    Tensor image;
    if (!fuzz::accepts([&] { data::decode_image(bytes, channels, image); })) continue;
    fuzz::require(image.spec() == TensorSpec{DType::u8, {header.size.height, header.size.width, channels}},
                  "an image has the size that its header says");
    // Every byte was written: a sanitizer would stop at this sum otherwise.
    std::uint64_t sum = 0;
    for (const auto value : image.as<std::uint8_t>()) sum += value;
    fuzz::require(sum <= 255 * image.spec().bytes(), "pixels are bytes");
  }
  (void)data::has_end(bytes, bytes);
  (void)data::is_turned_by(bytes);
  return 0;
}
