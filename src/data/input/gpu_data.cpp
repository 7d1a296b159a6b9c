#include "data/input/gpu_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/words.hpp"
#include "lockstep/error.hpp"
#include "step/exec/worker_pool.hpp"

namespace lockstep::input {

namespace {

/// The fraction (1/16) of the free memory that is left free if the job does not ask for the data to be there:
/// micro-batches may move to this rank.
constexpr std::size_t kSpareShare = 16;

/// A set, and whether it is kept on the GPU.
struct Candidate {
  std::string name;
  std::shared_ptr<const DataSet> set;
  bool training = false;
  std::string obstacle = {};  ///< why not; empty: it is kept
  std::size_t bytes = 0;
  std::size_t drawn_bytes = 0;  ///< for each worker, besides the inputs made from them
};

struct Chooser {
  const JobFile& job;
  Communicator& communicator;
  const PreparedData& data;
  const Graph& graph;

  data::Pipeline pipeline(const Candidate& of) const { return data.pipeline(*of.set, of.training); }

  /// Checks what does not depend on the GPU.
  void judge(Candidate& of) const {
    const auto& features = of.set->info().features;
    const bool text = std::any_of(features.begin(), features.end(),
                                  [](const Feature& feature) { return feature.kind == Feature::Kind::tokens; });
    const auto whole = pipeline(of);
    of.obstacle = of.training && text ? of.set->info().class_names.empty() ? "windows of text change with the epoch"
                                                                           : "texts stay on the host"
                  : of.training && job.data.mix ? "`mix` computes pixels"
                                                : whole.not_storable();
    if (!of.obstacle.empty()) return;
    of.bytes = GpuDataSet::bytes(*of.set, whole, graph);
    of.drawn_bytes = GpuDataSet::drawn_bytes(whole, graph);
  }

  [[noreturn]] void refuse(const Candidate& of) const {
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected data that a GPU can keep and augment, found that {} cannot be: {}; set "
                            "data.cache: memory",
                            job.place_of("job.data.cache").text(), of.name, of.obstacle));
  }

  /// Leaves on the host whatever does not fit on every rank's GPU; earlier candidates have precedence.
  void fit(std::vector<Candidate>& all, const GpuRoom& room, std::size_t free) const {
    std::size_t used = exec::bytes_of(room.needs) + free / kSpareShare;
    std::vector<std::uint8_t> fits(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t with_it = used + all[i].bytes + all[i].drawn_bytes * room.workers;
      fits[i] = all[i].obstacle.empty() && with_it <= free ? 1 : 0;
      if (fits[i] != 0) used = with_it;
    }
    std::vector<std::uint8_t> of_ranks(all.size() * communicator.size());
    communicator.all_gather(std::as_bytes(std::span(fits)), std::as_writable_bytes(std::span(of_ranks)),
                            {"data on the GPUs", 0, job.timeout()});
    for (std::size_t i = 0; i < of_ranks.size(); ++i) {
      Candidate& candidate = all[i % all.size()];
      if (of_ranks[i] == 0 && candidate.obstacle.empty()) candidate.obstacle = "it does not fit";
    }
  }
};

/// Adds its needs: its own memory, and more for inputs.
void add_needs(std::vector<exec::MemoryNeed>& needs, const Candidate& of) {
  needs.push_back({"data: " + of.name, of.bytes, 1, "data.cache: memory"});
  for (exec::MemoryNeed& need : needs) {
    if (need.what == (of.training ? kInputsOfTraining : kInputsOfEvaluations)) need.each += of.drawn_bytes;
  }
}

std::string summary_of(const std::vector<Candidate>& all) {
  std::string text;
  for (const Candidate& of : all) {
    const std::string where =
        of.obstacle.empty() ? fmt::format("GPU ({})", byte_count(of.bytes)) : fmt::format("host: {}", of.obstacle);
    text += fmt::format("{}{} made on the {}", text.empty() ? "" : ", ", of.name, where);
  }
  return text;
}

std::shared_ptr<const GatherKernels> make_gather_kernels(const device::CudaModule& module) {
  auto* const make = module.library.find<GatherKernels*()>(kModuleMakeGatherKernels);
  LOCKSTEP_CHECK(make != nullptr, "a CUDA module of this build has the gathering kernels");
  return std::shared_ptr<const GatherKernels>(make());
}

}  // namespace

GpuData put_gpu_data(const JobFile& job, Communicator& communicator, const exec::GpuDevice& device,
                     const PreparedData& data, const Graph& graph, bool with_validation, const GpuRoom& room) {
  device::Gpu& gpu = device.gpu();
  gpu.make_current();
  const Chooser chooser{job, communicator, data, graph};
  const bool must = room.for_data && job.data.cache == SampleCache::device;
  std::vector<Candidate> all;
  if (room.for_data && job.data.cache != SampleCache::none) {
    all.push_back({"train", data.train, true});
    if (with_validation) all.push_back({"validation", data.validation, false});
  }
  auto needs = room.needs;
  for (Candidate& candidate : all) {
    chooser.judge(candidate);
    if (must && !candidate.obstacle.empty()) chooser.refuse(candidate);
    if (must) add_needs(needs, candidate);
  }
  const std::size_t free = gpu.free_memory();
  exec::require_memory(device.setup().place.text(), free, needs, job.batch_size / job.micro_batches, room.workers);
  if (!must && !all.empty()) chooser.fit(all, room, free);
  for (const Candidate& of : all) {
    if (!must && of.obstacle.empty()) add_needs(needs, of);
  }
  GpuData kept;
  kept.left = free - exec::bytes_of(needs);
  kept.summary = summary_of(all);
  const auto kernels = make_gather_kernels(*device.setup().module);
  const int threads = job.data.threads > 0 ? job.data.threads : exec::max_loader_threads(communicator);
  exec::WorkerPool readers(threads);
  for (const Candidate& of : all) {
    if (!of.obstacle.empty()) continue;
    auto set = std::make_shared<GpuDataSet>(*of.set, chooser.pipeline(of), graph, gpu, kernels, readers);
    (of.training ? kept.train : kept.validation) = std::move(set);
  }
  return kept;
}

}  // namespace lockstep::input
