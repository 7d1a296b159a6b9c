// The closed sets of a job file. Each value has one name, in the table beside its enum: the parser, the JSON Schema,
// messages and the canonical form all take it from there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep {

/// The names of an enum's values, in their order.
template <class Choice>
inline constexpr std::array<std::string_view, 0> kNames{};

template <class Choice>
concept NamedChoice = !kNames<Choice>.empty();

template <NamedChoice Choice>
[[nodiscard]] constexpr std::string_view name_of(Choice value) {
  return kNames<Choice>.at(static_cast<std::size_t>(value));
}

/// The value with that name. Throws std::out_of_range if there is none.
template <NamedChoice Choice>
[[nodiscard]] constexpr Choice value_of(std::string_view name) {
  std::size_t value = 0;
  while (kNames<Choice>.at(value) != name) ++value;
  return static_cast<Choice>(value);
}

/// The type that layers compute in.
enum class Precision : std::uint8_t { fp32, tf32, bf16, fp16 };
template <>
inline constexpr std::array<std::string_view, 4> kNames<Precision>{"fp32", "tf32", "bf16", "fp16"};

/// The device that layers run on.
enum class DeviceChoice : std::uint8_t { automatic, cpu, cuda };
template <>
inline constexpr std::array<std::string_view, 3> kNames<DeviceChoice>{"auto", "cpu", "cuda"};

/// Whether the result may depend on the number of ranks.
enum class Exactness : std::uint8_t { required, preferred, never };
template <>
inline constexpr std::array<std::string_view, 3> kNames<Exactness>{"required", "preferred", "never"};

/// Whose parameter names and element order a weights file uses; automatic: those of the program that wrote it, which
/// the file tells.
enum class WeightNames : std::uint8_t { automatic, lockstep, torch, torchvision, huggingface };
template <>
inline constexpr std::array<std::string_view, 5> kNames<WeightNames>{"auto", "lockstep", "torch", "torchvision",
                                                                     "huggingface"};

/// How micro-batches are assigned to ranks.
enum class BalanceMode : std::uint8_t { automatic, equal, weights, prometheus };
template <>
inline constexpr std::array<std::string_view, 4> kNames<BalanceMode>{"auto", "equal", "weights", "prometheus"};

/// Which activations are recomputed in backward instead of kept: none, those of cheap layers, or all within blocks.
enum class Recompute : std::uint8_t { never, cheap, blocks };
template <>
inline constexpr std::array<std::string_view, 3> kNames<Recompute>{"never", "cheap", "blocks"};

/// What is divided among ranks (ZeRO).
enum class Sharding : std::uint8_t { none, optimizer, gradients, parameters };
template <>
inline constexpr std::array<std::string_view, 4> kNames<Sharding>{"none", "optimizer", "gradients", "parameters"};
/// Whether gradients are added micro-batch by micro-batch, so that no rank ever holds a whole gradient.
[[nodiscard]] constexpr bool divides_gradients(Sharding sharding) {
  return sharding >= Sharding::gradients;
}
/// Whether each host, or rank on a GPU, keeps only its slices of the parameters, and workers keep no packed or rounded
/// weights.
[[nodiscard]] constexpr bool divides_parameters(Sharding sharding) {
  return sharding == Sharding::parameters;
}

/// program: the embedding program's (DataSets). own: of a reader that is in the registry.
enum class SourceKind : std::uint8_t {
  digits,
  images,
  idx,
  cifar,
  text,
  texts,
  tokens,
  csv,
  table,
  packed,
  program,
  own
};
template <>
inline constexpr std::array<std::string_view, 12> kNames<SourceKind>{
    "digits", "images", "idx", "cifar", "text", "texts", "tokens", "csv", "table", "packed", "program", "own"};

/// Which files of a folder or archive a source reads; automatic: test for validation and test, else train.
enum class SourcePart : std::uint8_t { automatic, train, test };
template <>
inline constexpr std::array<std::string_view, 3> kNames<SourcePart>{"auto", "train", "test"};

enum class Tokenizer : std::uint8_t { characters, bytes };
template <>
inline constexpr std::array<std::string_view, 2> kNames<Tokenizer>{"characters", "bytes"};

/// What to do about a category that the training set lacks.
enum class UnknownCategory : std::uint8_t { refuse, ignore };
template <>
inline constexpr std::array<std::string_view, 2> kNames<UnknownCategory>{"refuse", "ignore"};

/// What to do about samples that are found bad when the set is indexed.
enum class BadWhenIndexed : std::uint8_t { refuse, skip };
template <>
inline constexpr std::array<std::string_view, 2> kNames<BadWhenIndexed>{"refuse", "skip"};

/// What to do about a sample that is found bad later, when it is read.
enum class BadWhenRead : std::uint8_t { stop, replace };
template <>
inline constexpr std::array<std::string_view, 2> kNames<BadWhenRead>{"stop", "replace"};

/// Which samples of the training set a job trains on: all, or as many drawn from them with replacement (Efron,
/// "Bootstrap Methods: Another Look at the Jackknife", 1979).
enum class Resample : std::uint8_t { never, bootstrap };
template <>
inline constexpr std::array<std::string_view, 2> kNames<Resample>{"never", "bootstrap"};

/// Where decoded samples are kept.
enum class SampleCache : std::uint8_t { memory, device, none };
template <>
inline constexpr std::array<std::string_view, 3> kNames<SampleCache>{"memory", "device", "none"};

}  // namespace lockstep
