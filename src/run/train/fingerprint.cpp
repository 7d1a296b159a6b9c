#include "run/train/fingerprint.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/digest.hpp"
#include "graph/precision.hpp"
#include "lockstep/error.hpp"
#include "lockstep/graph_builder.hpp"
#include "lockstep/random.hpp"
#include "lockstep/version.hpp"
#include "ops/registry.hpp"
#include "run/train/library_results.hpp"
#include "step/exec/executor.hpp"

namespace lockstep::train {

namespace {

constexpr std::int64_t kBucketBytes = std::int64_t{1} << 30;

exec::TensorBlock first_values(const Graph& graph, const std::vector<ValueId>& ids, std::uint64_t seed) {
  exec::TensorBlock block(graph, ids);
  exec::initialize(graph, ids, seed, block);
  return block;
}

}  // namespace

std::string hash_of_micro_batch(exec::Executor& executor, const Graph& graph, const exec::Device& device,
                                std::uint64_t seed, InputSource& source, float loss_scale) {
  const auto buckets = exec::gradient_buckets(executor.program(), kBucketBytes, 1);
  const auto alone = make_single_communicator();
  const auto reducer = device.make_reducer(*alone, buckets, {});
  const auto parameters = first_values(graph, graph.parameters, seed);
  const auto states = first_values(graph, graph.states, seed);
  executor.use({parameters, states});
  const std::vector<int> micro_batches = {0};
  reducer->begin_step(0, comm::place_micro_batches(comm::equal_counts(1, 1)));
  const double loss = executor.train({0, micro_batches, loss_scale}, source, buckets, *reducer).at(0).loss;
  reducer->finish();
  Sha256 hash;
  hash.add(std::as_bytes(std::span(&loss, 1)));
  for (std::size_t b = 0; b < buckets.buckets.size(); ++b) {
    const std::vector<float> sums = reducer->fetch(b);
    const auto& bucket = buckets.buckets[b];
    for (std::size_t i = bucket.first_slot; i < static_cast<std::size_t>(bucket.last_slot); ++i) {
      const std::size_t first = buckets.slots[i].offset;  // skips the gaps between slots
      const std::size_t elements = executor.program().slots[i].elements;
      hash.add(std::as_bytes(std::span(sums).subspan(first, elements)));
    }
  }
  return hash.hex().substr(0, 16);
}

namespace {

using Int = std::int64_t;

constexpr Int kBatch = 4, kClasses = 10;
constexpr std::uint64_t kSeed = 1;

// Has convolutions of several channel blocks, matrix multiplications that are cut into blocks in all three dimensions,
// and every kind of exponential, norm and sum that a layer can have.
Graph probe(const OpRegistry& ops) {
  GraphBuilder b(ops, kBatch);
  const auto conv = [&](ValueId x, Int filters, Int stride) {
    return b.apply("conv", {x}, Attributes({{"filters", filters}, {"kernel", Int{3}}, {"stride", stride}}));
  };
  const auto linear = [&](ValueId x, Int features) {
    return b.apply("linear", {x}, Attributes({{"features", features}}));
  };
  ValueId x = b.input("image", {DType::f32, {14, 14, 16}});
  const ValueId label = b.input("label", {DType::i32, {}});
  x = b.apply("gelu", {b.apply("batch_norm", {conv(x, 32, 1)})});
  x = b.apply("silu", {conv(x, 48, 2)});
  x = b.apply("reshape", {x}, Attributes({{"shape", std::vector<Int>{49, 48}}}));
  x = linear(b.apply("layer_norm", {x}), Int{3} * 48);
  x = b.apply("tanh", {b.apply("attention", {x}, Attributes({{"heads", Int{3}}, {"causal", true}}))});
  x = b.apply("rms_norm", {b.apply("sigmoid", {linear(b.apply("flatten", {x}), 96)})});
  x = linear(b.apply("softmax", {x}), kClasses);
  b.graph().output = x;
  b.graph().loss = b.add_node("cross_entropy", {x, label}, {}, "loss");
  return std::move(b.graph());
}

class ProbeSource final : public InputSource {
 public:
  ProbeSource() : image_({DType::f32, {kBatch, 14, 14, 16}}), label_({DType::i32, {kBatch}}) {
    RandomStream random(hash_name("fingerprint"), 0);
    for (float& value : image_.as<float>()) value = random.between(-1, 1);
    for (std::int32_t& value : label_.as<std::int32_t>()) value = random.below(kClasses);
  }
  void get(std::uint64_t /*step*/, int /*micro-batch*/, MicroBatchInputs& inputs) override {
    inputs.tensors = {image_.bytes(), label_.bytes()};
    inputs.valid = kBatch;
  }
  void release(std::uint64_t /*step*/, int /*micro-batch*/) override {}

 private:
  Tensor image_, label_;
};

// Only what oneDNN computes natively in bfloat16 has bits of its own there: otherwise values are upcast and float32
// kernels compute.
std::string hash_of_kernels(const exec::Device& device, DType precision) {
  OpRegistry ops;
  ops::add_built_in(ops);
  Graph graph = probe(ops);
  if (precision == DType::bf16 && device.info().multiplies_bf16) set_precision(graph, precision);
  exec::WorkerPool pool(1);
  exec::Executor executor(graph, Mode::training, device, pool, kSeed);
  ProbeSource source;
  return hash_of_micro_batch(executor, graph, device, kSeed, source);
}

}  // namespace

std::string Fingerprint::text() const {
  const std::string chosen = algorithms.empty() ? "" : fmt::format("algorithms {}, ", algorithms);
  const std::string of_module = module.empty() ? "" : fmt::format("module {}, ", module);
  return fmt::format("kernels {}, {}{}, {}math {}, jpeg {}, lockstep {}", kernels, chosen, libraries, of_module, math,
                     jpeg, version);
}

std::string Fingerprint::detail() const {
  return fmt::format("{}; {}", instructions, builds);
}

namespace {

/// The parts of a text that another one lacks.
std::string missing_in(const std::string& other, const std::string& text) {
  const auto parts_of = [](std::string_view rest) {
    std::vector<std::string_view> parts;
    while (!rest.empty()) {
      const std::size_t end = rest.find_first_of(",;");
      parts.push_back(rest.substr(0, end));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : std::min(rest.size(), end + 2));
    }
    return parts;
  };
  const auto theirs = parts_of(other);
  auto own = parts_of(text);
  std::erase_if(own, [&](auto part) { return std::find(theirs.begin(), theirs.end(), part) != theirs.end(); });
  return fmt::format("{}", fmt::join(own, ", "));
}

}  // namespace

std::string differences(const std::string& then, const std::string& now) {
  return fmt::format("\n  then: {}\n  now: {}", missing_in(now, then), missing_in(then, now));
}

std::string digest_of(const std::vector<std::string>& algorithms) {
  if (algorithms.empty()) return "";
  Sha256 hash;
  for (const std::string& algorithm : algorithms) {
    const std::string line = algorithm + "\n";
    hash.add(std::as_bytes(std::span(line)));
  }
  return hash.hex().substr(0, 16);
}

namespace {

constexpr const char* kModule = "liblockstep_cuda";
constexpr std::array<std::string_view, 6> kLibraries = {"libdnnl", "libjpeg", kModule, "libm", "libpng16", "libz"};
constexpr std::size_t kIdDigits = 6;

/// "libm" of "/lib/x86_64-linux-gnu/libm.so.6"
std::string_view name_of(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  return path.substr(0, path.find(".so"));
}

std::size_t padded(std::size_t bytes) {
  return (bytes + 3) / 4 * 4;
}

/// The first digits of the build id in an ELF note segment; empty if it has none.
std::string build_id_of(std::span<const std::byte> notes) {
  ElfW(Nhdr) note{};
  while (notes.size() >= sizeof(note)) {
    std::memcpy(&note, notes.data(), sizeof(note));
    const std::size_t name = padded(note.n_namesz), value = padded(note.n_descsz);
    if (notes.size() < sizeof(note) + name + value) return "";
    if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz >= kIdDigits / 2) {
      std::string digits;
      for (const std::byte byte : notes.subspan(sizeof(note) + name, kIdDigits / 2)) {
        digits += fmt::format("{:02x}", std::to_integer<int>(byte));
      }
      return digits;
    }
    notes = notes.subspan(sizeof(note) + name + value);
  }
  return "";
}

std::string build_of(const dl_phdr_info& library) {
  for (const auto& segment : std::span(library.dlpi_phdr, library.dlpi_phnum)) {
    if (segment.p_type != PT_NOTE) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader gives addresses as numbers
    const auto* begin = reinterpret_cast<const std::byte*>(library.dlpi_addr + segment.p_vaddr);
    if (std::string id = build_id_of({begin, segment.p_memsz}); !id.empty()) return id;
  }
  std::ifstream file(library.dlpi_name, std::ios::binary);
  return sha256(std::string(std::istreambuf_iterator<char>(file), {})).substr(0, kIdDigits);
}

// By name.
std::map<std::string, std::string> builds_of_libraries() {
  std::map<std::string, std::string> builds;
  const auto add = [](dl_phdr_info* library, std::size_t /*size*/, void* found) {
    const std::string_view name = name_of(library->dlpi_name);
    if (std::find(kLibraries.begin(), kLibraries.end(), name) == kLibraries.end()) return 0;
    static_cast<std::map<std::string, std::string>*>(found)->emplace(name, build_of(*library));
    return 0;
  };
  dl_iterate_phdr(add, &builds);
  return builds;
}

std::string to_text(const std::map<std::string, std::string>& builds) {
  std::vector<std::string> texts;
  for (const auto& [name, build] : builds) texts.push_back(name + " " + build);
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

std::string library_builds() {
  return to_text(builds_of_libraries());
}

Fingerprint take_fingerprint(const exec::Device& device, DType precision) {
  const auto builds = builds_of_libraries();
  const auto module = builds.find(kModule);
  return {.kernels = hash_of_kernels(device, precision),
          .libraries = device.fingerprint(),
          .version = std::string(version()),
          .math = hash_of_math(),
          .jpeg = hash_of_jpeg(),
          .module = module == builds.end() ? "" : module->second,
          .builds = to_text(builds),
          .instructions = device.info().isa};
}

}  // namespace lockstep::train
