#include "run/train/bad_samples.hpp"

#include <algorithm>
#include <span>

#include "data/bytes.hpp"

namespace lockstep::train {

namespace {

std::string write(const std::vector<data::ReplacedSample>& samples) {
  std::string out;
  for (const auto& sample : samples) {
    data::append_text(out, sample.set);
    data::append(out, sample.id);
    data::append(out, sample.by);
    for (const auto* text : {&sample.name, &sample.by_name, &sample.reason}) data::append_text(out, *text);
  }
  return out;
}

void read(std::string_view bytes, std::vector<data::ReplacedSample>& samples) {
  data::ByteReader reader(bytes, "what a rank reports of replaced samples ends too early");
  while (!reader.rest().empty()) {
    data::ReplacedSample& sample = samples.emplace_back();
    sample.set = reader.text();
    sample.id = reader.value<std::int64_t>();
    sample.by = reader.value<std::int64_t>();
    for (auto* text : {&sample.name, &sample.by_name, &sample.reason}) *text = reader.text();
  }
}

auto key(const data::ReplacedSample& sample) {
  return std::pair(sample.set, sample.id);
}

}  // namespace

std::vector<data::ReplacedSample> gather_replaced(data::ReplacedSamples& replaced, Communicator& communicator,
                                                  const Operation& operation) {
  std::string mine = write(replaced.take());
  const std::uint64_t length = mine.size();
  std::vector<std::uint64_t> lengths(communicator.size());
  communicator.all_gather(std::as_bytes(std::span(&length, 1)), std::as_writable_bytes(std::span(lengths)), operation);
  const std::uint64_t most = *std::max_element(lengths.begin(), lengths.end());
  if (most == 0) return {};
  mine.resize(most);
  std::string all(most * lengths.size(), '\0');
  communicator.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), operation);
  std::vector<data::ReplacedSample> samples;
  if (communicator.rank() != 0) return samples;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
    read(std::string_view(all).substr(rank * most, lengths[rank]), samples);
  }
  std::sort(samples.begin(), samples.end(), [](const auto& a, const auto& b) { return key(a) < key(b); });
  samples.erase(
      std::unique(samples.begin(), samples.end(), [](const auto& a, const auto& b) { return key(a) == key(b); }),
      samples.end());
  return samples;
}

void BadSamples::report(std::int64_t step) {
  const Operation operation{"bad samples", static_cast<std::uint64_t>(step), run_.timeout()};
  for (const auto& sample : gather_replaced(*replaced_, run_.communicator, operation)) {
    if (!reported_.insert(key(sample)).second) continue;
    run_.emit(events::BadSample{.step = step,
                                .set = sample.set,
                                .sample = sample.id,
                                .name = sample.name,
                                .replaced_by = sample.by,
                                .replaced_by_name = sample.by_name,
                                .message = sample.text()});
  }
}

}  // namespace lockstep::train
