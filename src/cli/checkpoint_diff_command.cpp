// lockstep checkpoint diff: whether two checkpoints hold the same bits, and if not, how far apart they are.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>

#include "cli/checkpoint_commands.hpp"
#include "config/config.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/text.hpp"
#include "run/checkpoint/chosen_checkpoint.hpp"

namespace lockstep::cli {

namespace {

struct DiffArguments {
  std::string a, b;
};

using Tensors = std::map<std::string, checkpoint::SavedTensor>;

Tensors by_name(const checkpoint::Checkpoint& checkpoint) {
  Tensors tensors;
  for (const auto& tensor : checkpoint.manifest.tensors) tensors[tensor.name] = tensor;
  return tensors;
}

std::vector<float> values_of(const checkpoint::Checkpoint& checkpoint, const checkpoint::SavedTensor& tensor) {
  std::vector<float> values(elements(tensor.shape));
  checkpoint::load(checkpoint, {{tensor.name, {tensor.shape, values}}});
  return values;
}

/// "" if all bits are equal.
std::string difference(const std::vector<float>& a, const std::vector<float>& b) {
  std::int64_t differ = 0;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i])) continue;
    ++differ;
    const double apart = std::abs(static_cast<double>(a[i]) - b[i]);
    if (apart > largest || std::isnan(apart)) largest = apart;
  }
  if (differ == 0) return "";
  return fmt::format("{} of {} values differ, by at most {}", telemetry::grouped(differ),
                     telemetry::grouped(std::ssize(a)), telemetry::short_number(largest));
}

class Differences {
 public:
  void add(const std::string& name, const std::string& what) {
    if (what.empty()) return;
    fmt::print("{}: {}\n", name, what);
    ++count_;
  }
  template <class T>
  void compare(const std::string& name, const T& a, const T& b) {
    if (a != b) add(name, fmt::format("{} and {}", a, b));
  }
  int count() const { return count_; }

 private:
  int count_ = 0;
};

void compare_progress(const checkpoint::Progress& a, const checkpoint::Progress& b, Differences& out) {
  out.compare("step", a.step, b.step);
  out.compare("samples", a.samples, b.samples);
  out.compare("seed", a.seed, b.seed);
  out.compare("micro_batches", a.micro_batches, b.micro_batches);
  if (a.job_digest != b.job_digest) {
    for (const auto& text : config::differences(a.job, b.job)) out.add("job", text);
  }
  out.compare("data_digest", a.data_digest, b.data_digest);
  out.compare("fingerprint", a.fingerprint, b.fingerprint);
  out.compare("plugins", a.plugins, b.plugins);
  for (const auto& [name, value] : a.metrics) {
    const auto other = b.metrics.find(name);
    if (other == b.metrics.end()) continue;
    if (std::isnan(value) && std::isnan(other->second)) continue;
    out.compare("metrics." + name, value, other->second);
  }
}

void compare_tensors(const checkpoint::Checkpoint& a, const checkpoint::Checkpoint& b, Differences& out) {
  const Tensors in_a = by_name(a), in_b = by_name(b);
  for (const auto& [name, tensor] : in_a) {
    const auto found = in_b.find(name);
    if (found == in_b.end()) {
      out.add(name, "only in the first");
    } else if (found->second.shape != tensor.shape) {
      out.add(name, fmt::format("{} and {}", to_string(tensor.shape), to_string(found->second.shape)));
    } else {
      out.add(name, difference(values_of(a, tensor), values_of(b, found->second)));
    }
  }
  for (const auto& [name, tensor] : in_b) {
    if (!in_a.contains(name)) out.add(name, "only in the second");
  }
}

int diff(const DiffArguments& arguments) {
  const auto a = checkpoint::checkpoint_at(arguments.a).checkpoint,
             b = checkpoint::checkpoint_at(arguments.b).checkpoint;
  Differences differences;
  compare_progress(a.manifest.progress, b.manifest.progress, differences);
  compare_tensors(a, b, differences);
  if (differences.count() > 0) return static_cast<int>(ExitCode::data);
  fmt::print("the same bits: {} tensors, step {}\n", a.manifest.tensors.size(), a.manifest.progress.step);
  return 0;
}

}  // namespace

void add_checkpoint_diff(CLI::App& checkpoint, Action& run) {
  CLI::App* command =
      checkpoint.add_subcommand("diff", "Compare two checkpoints bit by bit; exits with 65 if they differ.");
  command->footer(
      "Examples:\n  lockstep checkpoint diff runs/one runs/three\n"
      "  lockstep checkpoint diff runs/a/checkpoints/step-00000748 runs/a/checkpoints/best");
  auto arguments = std::make_shared<DiffArguments>();
  command->add_option("A", arguments->a, kCheckpointPlaceHelp)->required();
  command->add_option("B", arguments->b, "the checkpoint to compare it with")->required();
  command->callback([&run, arguments] { run = [arguments] { return diff(*arguments); }; });
}

}  // namespace lockstep::cli
