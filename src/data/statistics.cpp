#include "data/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <thread>

#include "data/bytes.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

struct Sums {
  std::uint64_t pixels = 0;
  std::vector<std::uint64_t> values, squares;  ///< by channel

  explicit Sums(std::size_t channels) : values(channels), squares(channels) {}

  void add(const Tensor& image) {
    const std::size_t channels = values.size();
    const auto bytes = image.as<std::uint8_t>();
    for (std::size_t i = 0; i + channels <= bytes.size(); i += channels) {
      for (std::size_t c = 0; c < channels; ++c) {
        const std::uint64_t value = bytes[i + c];
        values[c] += value;
        squares[c] += value * value;
      }
    }
    pixels += bytes.size() / channels;
  }

  void add(const Sums& other) {
    pixels += other.pixels;
    for (std::size_t c = 0; c < values.size(); ++c) {
      values[c] += other.values[c];
      squares[c] += other.squares[c];
    }
  }
};

std::size_t channels_of(const DataSetInfo& info) {
  std::int64_t channels = 0;
  for (const Feature& feature : info.features) {
    if (feature.kind != Feature::Kind::image) continue;
    const std::int64_t here = feature.spec.shape.at(2);
    if (channels != 0 && here != channels) {
      throw Error(ExitCode::configuration,
                  fmt::format("job.data.normalize: expected images of one number of channels, found {} and {}; "
                              "give mean and std as one number each",
                              channels, here));
    }
    channels = here;
  }
  return channels;
}

/// Samples first, first + stride, ... of the `count` that are used.
void sum_part(const DataSet& set, std::int64_t count, int first, int stride, Sums& sums) {
  Sample sample;
  const auto& features = set.info().features;
  for (std::int64_t i = first; i < count; i += stride) {
    set.read(i * set.size() / count, sample);
    for (std::size_t k = 0; k < sample.size(); ++k) {
      if (features[k].kind == Feature::Kind::image) sums.add(sample[k].tensor);
    }
  }
}

Sums sum_all(const DataSet& set, const StatisticsOptions& options, std::size_t channels) {
  const std::size_t parts = std::max(1, options.threads);
  const std::int64_t count = std::min(set.size(), options.max_samples);
  std::vector<Sums> sums(parts, Sums(channels));
  std::vector<std::exception_ptr> errors(parts);
  std::vector<std::thread> threads;
  for (std::size_t part = 0; part < parts; ++part) {
    threads.emplace_back([&, part] {
      try {
        sum_part(set, count, part, parts, sums[part]);
      } catch (...) {
        errors[part] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& error : errors) {
    if (error != nullptr) std::rethrow_exception(error);
  }
  for (std::size_t part = 1; part < parts; ++part) sums[0].add(sums[part]);
  return sums[0];
}

/// n * sum of squares - (sum of values)^2 is exact in 128 bits for up to 10^15 pixels.
double stddev_of(const Sums& sums, std::size_t channel) {
  __extension__ using Wide = unsigned __int128;
  const Wide n = sums.pixels, value = sums.values[channel], square = sums.squares[channel];
  const double stddev = std::sqrt(static_cast<double>(n * square - value * value)) / sums.pixels;
  return stddev > 0 ? stddev / 255 : 1;
}

ChannelStatistics finish(const Sums& sums) {
  ChannelStatistics result;
  for (std::size_t c = 0; c < sums.values.size(); ++c) {
    const double pixels = std::max<std::uint64_t>(1, sums.pixels);
    result.mean.push_back(sums.values[c] / pixels / 255);
    result.stddev.push_back(stddev_of(sums, c));
  }
  return result;
}

/// By element of the columns: whether it is a number.
std::vector<bool> numbers_of(const std::vector<Column>& columns) {
  std::vector<bool> numbers;
  for (const Column& column : columns) {
    numbers.resize(numbers.size() + column.elements());
    if (column.categories.empty()) numbers[numbers.size() - (column.missing ? 2 : 1)] = true;
  }
  return numbers;
}

/// visit(element, value) for all that is not missing, sample after sample.
template <class Visit>
void for_numbers(const DataSet& set, std::size_t feature, const std::vector<bool>& numbers, const Visit& visit) {
  Sample sample;
  for (std::int64_t id = 0; id < set.size(); ++id) {
    set.read_without_images(id, sample);
    const auto look = [&](const auto row) {
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (numbers[i] && !std::isnan(row[i])) visit(i, static_cast<double>(row[i]));
      }
    };
    const Tensor& tensor = sample[feature].tensor;
    tensor.spec().dtype == DType::f64 ? look(tensor.as<double>()) : look(tensor.as<float>());
  }
}

/// Of a table, in two passes, as differences from the first value: numbers may be far from 0 and near to one another,
/// or all alike. `numbers`: which elements are; 0 and 1 for the others.
ChannelStatistics column_statistics(const DataSet& set, std::size_t feature, const std::vector<bool>& numbers) {
  std::vector<double> count(numbers.size()), first(numbers.size()), mean(numbers.size()), squares(numbers.size());
  for_numbers(set, feature, numbers, [&](std::size_t i, double value) {
    if (count[i] == 0) first[i] = value;
    count[i] += 1;
    mean[i] += value - first[i];
  });
  for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = first[i] + mean[i] / std::max(count[i], 1.0);
  for_numbers(set, feature, numbers,
              [&](std::size_t i, double value) { squares[i] += (value - mean[i]) * (value - mean[i]); });
  ChannelStatistics result;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    result.mean.push_back(mean[i]);
    result.stddev.push_back(numbers[i] ? std::sqrt(squares[i] / std::max(count[i], 1.0)) : 1);
  }
  return result;
}

std::string write(const ChannelStatistics& statistics) {
  std::string out;
  for (const auto* values : {&statistics.mean, &statistics.stddev}) {
    for (const double value : *values) append(out, value);
  }
  return out;
}

ChannelStatistics read(const std::string& note, std::size_t channels) {
  ByteReader reader(note, "noted statistics end too early");
  ChannelStatistics result;
  for (auto* values : {&result.mean, &result.stddev}) {
    for (std::size_t c = 0; c < channels; ++c) values->push_back(reader.value<double>());
  }
  return result;
}

}  // namespace

ChannelStatistics channel_statistics(const DataSet& set, const StatisticsOptions& options) {
  const DataSetInfo& info = set.info();
  if (!info.mean.empty()) return {info.mean, info.stddev};
  for (std::size_t i = 0; i < info.features.size(); ++i) {
    if (info.features[i].kind == Feature::Kind::columns) return column_statistics(set, i, numbers_of(info.columns));
  }
  const std::size_t channels = channels_of(info);
  if (channels == 0) return {};
  auto name = fmt::format("statistics of {} over {}", info.digest, std::min(set.size(), options.max_samples));
  for (const Feature& feature : info.features) {  // gray images are colored ones where a model has been trained on such
    name += fmt::format(", {} {}", feature.name, to_string(feature.spec.shape));
  }
  return read(noted(options.notes, name, [&] { return write(finish(sum_all(set, options, channels))); }), channels);
}

std::map<std::string, ChannelStatistics> target_statistics(const DataSet& set) {
  std::map<std::string, ChannelStatistics> statistics;
  const auto& features = set.info().features;
  const bool has_inputs = std::any_of(features.begin(), features.end(), [](const Feature& feature) {
    return feature.kind == Feature::Kind::columns || feature.kind == Feature::Kind::image;
  });
  for (std::size_t i = 0; i < features.size() && has_inputs; ++i) {
    if (features[i].kind != Feature::Kind::tensor || features[i].spec.dtype != DType::f32) continue;
    const std::vector<bool> numbers(features[i].spec.elements(), true);
    ChannelStatistics& of = statistics[features[i].name] = column_statistics(set, i, numbers);
    std::replace(of.stddev.begin(), of.stddev.end(), 0.0, 1.0);
    for (std::size_t n = 0; n < features[i].offsets.size(); ++n) of.mean[n] += features[i].offsets[n];
  }
  return statistics;
}

}  // namespace lockstep::data
