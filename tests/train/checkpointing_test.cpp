// A run's checkpoints as the training loop sees them: a checkpoint that was never begun does not count as written, and
// a model that was cut continues uncut.
#include "run/train/checkpointing.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "checkpoint/faulty_files.hpp"
#include "checkpoint/support.hpp"
#include "config/config.hpp"
#include "lockstep/error.hpp"
#include "lockstep/graph_builder.hpp"
#include "ops/registry.hpp"
#include "run/train/catalogue.hpp"
#include "run/train/start_check.hpp"
#include "step/exec/cpu_device.hpp"

namespace lockstep::train {

namespace {

using checkpoint::FaultyFiles, checkpoint::FileCall, checkpoint::Folder, checkpoint::progress_of;
using std::chrono::milliseconds;

/// Keeps warnings only.
class Warnings final : public events::Sink {
 public:
  void event(const events::Event& event) override {
    if (const auto* warning = std::get_if<events::Warning>(&event)) all.push_back(warning->message);
  }
  std::vector<std::string> all;
};

Graph small_graph(const Registries& registries) {
  GraphBuilder b(registries.ops, 2);
  b.apply("linear", {b.input("image", {DType::f32, {3}})}, Attributes({{"features", std::int64_t{5}}}));
  return b.graph();
}

optim::Model small_model(const Registries& registries) {
  const Graph graph = small_graph(registries);
  return {exec::TensorBlock(graph, graph.parameters), exec::TensorBlock(graph, graph.states), {}};
}

/// A disk on which no sync completes while it is stuck.
class StuckDisk {
 public:
  StuckDisk() {
    files.before = [this](const FileCall& call) {
      while (stuck && call.kind == FileCall::Kind::sync) std::this_thread::sleep_for(milliseconds(1));
    };
  }
  FaultyFiles files;
  std::atomic<bool> stuck{true};
};

}  // namespace

TEST(Checkpointing, WhatNeverBeganIsNotWritten) {
  const Folder folder;
  StuckDisk disk;
  Warnings warnings;
  const Registries registries = Registries::built_in();
  const JobFile job =
      config::default_job({"run_directory=" + (folder / "run"), "timeout=0.3"}, catalogue_of(registries));
  const CanonicalJob canonical = config::canonical(job, catalogue_of(registries));
  const auto alone = make_single_communicator();
  TrainerOptions options;
  std::vector<events::Sink*> sinks = {&warnings};
  const exec::CpuDevice device;
  const optim::Model model = small_model(registries);
  {
    Checkpointing checkpointing({{job, canonical, *alone, device, sinks}, registries, options}, disk.files);
    checkpointing.prepare(checkpoint::sources_of(model, {}), 0, milliseconds(100));
    checkpointing.write(progress_of(1), false);
    EXPECT_TRUE(checkpointing.has_begun(1));
    checkpointing.write(progress_of(2), false);
    EXPECT_FALSE(checkpointing.has_begun(2));
    EXPECT_EQ(checkpointing.path(2), "");
    EXPECT_EQ(checkpointing.failures(), 1);
    EXPECT_EQ(warnings.all,
              std::vector<std::string>{"step 2: no checkpoint: the disk does not answer; training goes on"});
    try {
      checkpointing.finish({.limit = milliseconds(0)});
      ADD_FAILURE() << "a run without its last checkpoint has not ended well";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::infrastructure);
      EXPECT_EQ(error.what(), std::string("the last checkpoint could not be written: the disk does not answer"));
    }
    disk.stuck = false;
    while (checkpointing.path(1).empty() || checkpoint::list_checkpoints(folder / "run/checkpoints").empty()) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    try {  // step 1 is there, but it is not the last one requested
      checkpointing.finish({.limit = milliseconds(0)});
      ADD_FAILURE() << "a run without its last checkpoint has not ended well";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), std::string("the last checkpoint could not be written: the disk does not answer"));
    }
    checkpointing.write(progress_of(2), false);
    EXPECT_TRUE(checkpointing.has_begun(2));
    checkpointing.finish();
  }
  EXPECT_EQ(checkpoint::list_checkpoints(folder / "run/checkpoints").size(), 2u);
}

namespace {

/// The last checkpoint of a run of two ranks, on a disk that is full.
class FullDisk {
 public:
  FullDisk() {
    files.before = [this](const FileCall& call) {
      if (call.kind != FileCall::Kind::write || call.path.find("model.safetensors") == std::string::npos) return;
      if (refusals-- > 0) throw Error(ExitCode::infrastructure, "the disk: No space left on device");
    };
  }
  /// Trains nothing and ends; returns the error, or "".
  std::string end(const LastCheckpointWait& wait) {
    const Registries registries = Registries::built_in();
    const JobFile job = config::default_job({"run_directory=" + (folder / "run")}, catalogue_of(registries));
    const CanonicalJob canonical = config::canonical(job, catalogue_of(registries));
    const TrainerOptions options;
    const exec::CpuDevice device;
    std::array<std::string, 2> errors;
    run_in_threads(2, [&](Communicator& communicator) {
      Warnings sink;
      std::vector<events::Sink*> sinks = {&sink};
      const optim::Model model = small_model(registries);
      Checkpointing checkpointing({{job, canonical, communicator, device, sinks}, registries, options}, files);
      checkpointing.prepare(checkpoint::sources_of(model, {}), 0);
      checkpointing.write(progress_of(1), false);
      try {
        checkpointing.finish(wait);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::infrastructure);
        errors.at(static_cast<std::size_t>(communicator.rank())) = error.what();
      }
      if (communicator.rank() != 0) return;
      warnings = sink.all;
      failures = checkpointing.failures();
    });
    EXPECT_EQ(errors[0], errors[1]);
    return errors[0];
  }

  const Folder folder;
  FaultyFiles files;
  std::atomic<int> refusals{1'000'000};
  std::vector<std::string> warnings;
  std::int64_t failures = 0;
};

constexpr const char* kFull = "rank 0 on a: the disk: No space left on device";

}  // namespace

TEST(Checkpointing, TheLastOneIsWrittenWhenTheDiskHasRoomAgain) {
  FullDisk disk;
  disk.refusals = 3;
  EXPECT_EQ(disk.end({.first = milliseconds(2), .longest = milliseconds(5)}), "");
  EXPECT_EQ(checkpoint::list_checkpoints(disk.folder / "run/checkpoints").size(), 1u);
  EXPECT_EQ(disk.failures, 1);
  ASSERT_EQ(disk.warnings.size(), 1u) << "the same reason is told once";
  EXPECT_TRUE(disk.warnings[0].starts_with(std::string("step 1: the last checkpoint could not be written: ") + kFull +
                                           "; the result is kept in memory and written again until 2"))
      << disk.warnings[0];
  EXPECT_TRUE(disk.warnings[0].ends_with("; free room on the disk, or stop the run to give the result up"));
}

TEST(Checkpointing, TheWaitForTheLastOneHasALimit) {
  FullDisk disk;
  EXPECT_EQ(disk.end({milliseconds(300), milliseconds(2), milliseconds(5)}),
            std::string("the last checkpoint could not be written: ") + kFull + "; tried again for 0 s");
  EXPECT_TRUE(checkpoint::list_checkpoints(disk.folder / "run/checkpoints").empty());
}

namespace {

/// What a run resumes from, in `folder`, if it has the fingerprint `now`; rank r of two or more has parameter r.
checkpoint::Progress go_on(const Folder& folder, int ranks, const std::string& now,
                           std::vector<std::string>& warnings) {
  const Registries registries = Registries::built_in();
  const JobFile job = config::default_job({"run_directory=" + (folder / "run")}, catalogue_of(registries));
  const CanonicalJob canonical = config::canonical(job, catalogue_of(registries));
  const exec::CpuDevice device;
  const TrainerOptions options;
  checkpoint::Progress result;
  run_in_threads(ranks, [&](Communicator& communicator) {
    Warnings sink;
    std::vector<events::Sink*> sinks = {&sink};
    const auto rank = static_cast<std::size_t>(communicator.rank());
    const Graph graph = small_graph(registries);
    optim::Model model{{graph, graph.parameters}, {graph, graph.states}, {}};
    checkpoint::WholeModel whole = checkpoint::whole_of(model);
    if (ranks > 1) {
      for (std::size_t i = 0; i < whole.parameters.size(); ++i) whole.parameters[i].ranks = {static_cast<int>(i)};
      model.parameters = exec::TensorBlock(graph, {graph.parameters.at(rank)});
    }
    checkpoint::Progress progress = progress_of(0);
    progress.job_digest = canonical.digest;
    progress.fingerprint = now;
    progress.exactness = kBitwise;
    Checkpointing checkpointing({{job, canonical, communicator, device, sinks}, registries, options});
    const bool resumed = checkpointing.resume({}, model, progress, [](const auto&) {});
    for (std::size_t i = 0; i < model.parameters.size(); ++i) {
      for (float& value : model.parameters.at(i)) {
        EXPECT_EQ(value, static_cast<float>(progress.step));
        value = static_cast<float>(progress.step + 1);
      }
    }
    EXPECT_EQ(resumed, progress.step > 0);
    ++progress.step;
    checkpointing.prepare(checkpoint::sources_of(whole, model, {}), 0);
    checkpointing.write(progress, false);
    checkpointing.finish();
    if (communicator.rank() != 0) return;
    result = progress;
    warnings = sink.all;
  });
  return result;
}

}  // namespace

// No single rank computes a cut model's first micro-batch, so it is not in the fingerprint.
TEST(Checkpointing, ACutModelGoesOnUncutAndBack) {
  const Folder folder;
  const std::string cut = "kernels 1", uncut = "kernels 1, first micro-batch 2",
                    other = "kernels 1, first micro-batch 3";
  std::vector<std::string> warnings;
  EXPECT_EQ(go_on(folder, 2, cut, warnings).fingerprint, cut);
  EXPECT_EQ(go_on(folder, 1, uncut, warnings).fingerprint, uncut);
  const checkpoint::Progress last = go_on(folder, 2, cut, warnings);
  EXPECT_EQ(last.step, 3);
  EXPECT_EQ(last.fingerprint, uncut) << "what is known of the first micro-batch is kept";
  EXPECT_EQ(last.exactness, kBitwise);
  EXPECT_TRUE(warnings.empty());
  try {
    (void)go_on(folder, 1, other, warnings);
    ADD_FAILURE() << "its first micro-batch has other bits";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(error.what(),
              (folder / "run/checkpoints/step-00000003: a processor or libraries that compute other bits; "
                        "use those of then, or set exact: preferred\n  then: first micro-batch 2\n  now: "
                        "first micro-batch 3"));
  }
}

}  // namespace lockstep::train
