// A run's checkpoints as the training loop sees them: what was never begun is not taken for written.
#include "train/checkpointing.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "checkpoint/faulty_files.hpp"
#include "checkpoint/support.hpp"
#include "config/config.hpp"
#include "exec/cpu_device.hpp"
#include "lockstep/error.hpp"
#include "lockstep/graph_builder.hpp"
#include "ops/registry.hpp"
#include "train/catalogue.hpp"

namespace lockstep::train {

namespace {

using checkpoint::FaultyFiles, checkpoint::FileCall, checkpoint::Folder, checkpoint::progress_of;
using std::chrono::milliseconds;

/// Warnings, and nothing else.
class Warnings final : public events::Sink {
 public:
  void event(const events::Event& event) override {
    if (const auto* warning = std::get_if<events::Warning>(&event)) all.push_back(warning->message);
  }
  std::vector<std::string> all;
};

optim::Model small_model(const Registries& registries) {
  GraphBuilder b(registries.ops, 2);
  b.apply("linear", {b.input("image", {DType::f32, {3}})}, Attributes({{"features", std::int64_t{5}}}));
  return {exec::TensorBlock(b.graph(), b.graph().parameters), exec::TensorBlock(b.graph(), b.graph().states), {}};
}

/// A disk on which nothing that is synced gets through while it is stuck.
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
    checkpointing.prepare(model, {}, 0, milliseconds(100));
    checkpointing.write(progress_of(1), false);
    EXPECT_TRUE(checkpointing.has_begun(1));
    checkpointing.write(progress_of(2), false);
    EXPECT_FALSE(checkpointing.has_begun(2));
    EXPECT_EQ(checkpointing.path(2), "");
    EXPECT_EQ(checkpointing.failures(), 1);
    EXPECT_EQ(warnings.all,
              std::vector<std::string>{"step 2: no checkpoint: the disk does not answer; training goes on"});
    try {
      checkpointing.finish();
      ADD_FAILURE() << "a run without its last checkpoint has not ended well";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::infrastructure);
      EXPECT_EQ(error.what(), std::string("the last checkpoint could not be written: the disk does not answer"));
    }
    disk.stuck = false;
    while (checkpointing.path(1).empty() || checkpoint::list_checkpoints(folder / "run/checkpoints").empty()) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    try {  // step 1 is there, but it is not the last one that was asked for
      checkpointing.finish();
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

}  // namespace lockstep::train
