// Checkpoints on a working disk: what is written is what is read, on any number of ranks, cut or whole; damage is
// reported by name; which checkpoints are kept.
#include "run/checkpoint/checkpoint.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <mutex>

#include "checkpoint/faulty_files.hpp"
#include "checkpoint/support.hpp"
#include "core/digest.hpp"
#include "core/unfit_hosts.hpp"
#include "lockstep/error.hpp"
#include "run/checkpoint/reader.hpp"
#include "run/checkpoint/run_directory.hpp"

namespace lockstep::checkpoint {

namespace {

namespace fs = std::filesystem;

WriterOptions options_for(const std::string& directory, Retention retention = {}) {
  WriterOptions options;
  options.directory = directory;
  options.retention = retention;
  options.part_bytes = SmallModel::kPart;
  return options;
}

void write_steps(const std::string& directory, std::int64_t last, Retention retention = {}, std::int64_t best = 0) {
  const auto communicator = make_single_communicator();
  SmallModel model;
  FaultyFiles files;  // without faults here; avoids syncing the disk
  CheckpointWriter writer(*communicator, model.sources(), options_for(directory, retention), files);
  for (std::int64_t step = 1; step <= last; ++step) {
    model.set(static_cast<float>(step));
    ASSERT_TRUE(writer.begin(progress_of(step), step == best));
    model.set(-1);  // the copy has been taken
  }
  EXPECT_EQ(writer.finish(), "");
}

float load_value(const std::string& path) {
  std::string why;
  const auto checkpoint = read_checkpoint(path, why);
  EXPECT_TRUE(checkpoint) << why;
  SmallModel model;
  if (checkpoint) load(*checkpoint, model.targets());
  return model.value();
}

std::string why_not(const std::string& path) {
  std::string why;
  EXPECT_FALSE(read_checkpoint(path, why));
  return why;
}

/// All files of a folder but the manifest, hashed.
std::string hash_of_parts(const std::string& folder) {
  Sha256 hash;
  for (const auto& name : names_in(folder)) {
    if (name == "manifest.json") continue;
    hash.add(name);
    hash.add(slurp(folder + "/" + name));
  }
  return hash.hex();
}

std::string error_of(const std::function<void()>& call, ExitCode code) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST(Checkpoint, WhatIsWrittenIsRead) {
  const Folder folder;
  write_steps(folder / "checkpoints", 3);
  const auto list = list_checkpoints(folder / "checkpoints");
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list.front(), folder / "checkpoints/step-00000003");
  for (std::size_t i = 0; i < list.size(); ++i) EXPECT_EQ(load_value(list[i]), static_cast<float>(3 - i));
  const auto progress = open_checkpoint(list.front()).manifest.progress;
  EXPECT_EQ(progress.samples, 96);
  EXPECT_EQ(progress.metadata.at("classes"), R"(["cat","dog"])");
}

TEST(Checkpoint, NotANumberIsKept) {
  Manifest manifest;
  manifest.progress.best.value = -std::numeric_limits<double>::infinity();
  manifest.progress.metrics = {{"loss", std::numeric_limits<double>::quiet_NaN()}, {"accuracy", 0.1}};
  const auto read = parse_manifest(to_text(manifest), "m");
  EXPECT_EQ(read.progress.best.value, manifest.progress.best.value);
  EXPECT_TRUE(std::isnan(read.progress.metrics.at("loss")));
  EXPECT_EQ(read.progress.metrics.at("accuracy"), 0.1);
}

TEST(Checkpoint, EarlierSettingsAreKeptWhereThereAreSome) {
  Manifest manifest;
  EXPECT_EQ(to_text(manifest).find("earlier_settings"), std::string::npos);
  manifest.progress.earlier_settings = {{20, "{\"job\": 1}"}, {40, "{}"}};
  const auto read = parse_manifest(to_text(manifest), "m").progress.earlier_settings;
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].until, 20);
  EXPECT_EQ(read[0].job, "{\"job\": 1}");
  EXPECT_EQ(read[1].until, 40);
}

TEST(Checkpoint, TheLossScaleIsKeptWhereThereIsOne) {
  Manifest manifest;
  EXPECT_EQ(to_text(manifest).find("loss_scale"), std::string::npos) << "fp32 and bf16 have none";
  EXPECT_EQ(parse_manifest(to_text(manifest), "m").progress.loss_scale.scale, 0);
  manifest.progress.loss_scale = {.scale = 0x1p-14, .good_updates = 1999, .skipped = 17};
  const optim::LossScale read = parse_manifest(to_text(manifest), "m").progress.loss_scale;
  EXPECT_EQ(read.scale, 0x1p-14);
  EXPECT_EQ(read.good_updates, 1999);
  EXPECT_EQ(read.skipped, 17);
}

TEST(Checkpoint, WhatAScheduleRemembersIsKeptWhereItFollowsEvaluations) {
  Manifest manifest;
  EXPECT_EQ(to_text(manifest).find("\"schedule\""), std::string::npos);
  manifest.progress.schedule_best = {"accuracy", 0.5};
  manifest.progress.schedule_memory = {.without_improvement = 2, .cooldown = 3, .falls = 4};
  const Progress read = parse_manifest(to_text(manifest), "m").progress;
  EXPECT_EQ(read.schedule_best.metric, "accuracy");
  EXPECT_EQ(read.schedule_best.value, 0.5);
  EXPECT_EQ(read.schedule_memory, manifest.progress.schedule_memory);
}

TEST(Checkpoint, FilesAreTheSameOnAnyNumberOfRanks) {
  const Folder folder;
  write_steps(folder / "one", 1);
  const std::string alone = folder / "one/step-00000001";
  EXPECT_EQ(names_in(alone).size(), 2u + 2u + 1u);  // two tensors are cut
  for (const int ranks : {2, 3, 5, 16}) {
    const std::string directory = folder / std::to_string(ranks);
    std::vector<std::int64_t> bytes(static_cast<std::size_t>(ranks));
    run_in_threads(
        ranks,
        [&](Communicator& communicator) {
          SmallModel model;
          model.set(1);
          CheckpointWriter writer(communicator, model.sources(), options_for(directory));
          bytes[static_cast<std::size_t>(communicator.rank())] = writer.own_bytes();
          EXPECT_TRUE(writer.begin(progress_of(1), false));
          EXPECT_EQ(writer.finish(), "");
        },
        std::vector<int>(static_cast<std::size_t>(ranks), 0));
    EXPECT_EQ(hash_of_parts(directory + "/step-00000001"), hash_of_parts(alone)) << ranks << " ranks";
    EXPECT_EQ(slurp(directory + "/step-00000001/manifest.json"), slurp(alone + "/manifest.json"));
    const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
    EXPECT_LE(*most - *least, SmallModel::kPart + 1024) << ranks << " ranks";
  }
}

TEST(Checkpoint, EveryRankLoadsTheSame) {
  const Folder folder;
  write_steps(folder / "checkpoints", 2);
  std::mutex mutex;
  std::map<std::string, int> read_by;
  run_in_threads(3, [&](Communicator& communicator) {
    std::optional<Checkpoint> found;
    if (communicator.rank() == 0) found = open_checkpoint(folder / "checkpoints/step-00000002");
    found = broadcast_checkpoint(std::move(found), communicator, std::chrono::seconds(60));
    SmallModel model;
    CheckpointReader reader(communicator, std::chrono::seconds(60));
    EXPECT_TRUE(reader.read(*found).empty());
    {
      const std::lock_guard lock(mutex);
      for (const auto& [name, file] : reader.own()) ++read_by[name];
    }
    EXPECT_LE(reader.own().size(), 2u) << "the work is shared";
    reader.load(*found, model.targets());
    EXPECT_EQ(model.value(), 2);
  });
  EXPECT_EQ(read_by.size(), 4u);
  for (const auto& [name, times] : read_by) EXPECT_EQ(times, 1) << name;
}

TEST(Checkpoint, EveryRankHearsOfDamageWhoeverReadsIt) {
  const Folder folder;
  write_steps(folder / "c", 1);
  const std::string path = folder / "c/step-00000001";
  const auto checkpoint = open_checkpoint(path);
  for (const auto& [name, file] : checkpoint.manifest.files) {
    const std::string sound = slurp(path + "/" + name);
    spit(path + "/" + name, sound.substr(0, 9));
    run_in_threads(3, [&](Communicator& communicator) {
      CheckpointReader reader(communicator, std::chrono::seconds(60));
      EXPECT_EQ(reader.read(checkpoint),
                std::vector{fmt::format("{}/{}: damaged: expected {} bytes, found 9", path, name, sound.size())});
    });
    spit(path + "/" + name, sound);
  }
}

TEST(Checkpoint, WorkIsSpreadOverHosts) {
  const SmallModel model;
  Topology topology{.host_of = {0, 0, 1, 1}, .host_names = {"a", "b"}};
  const auto parts = plan_parts(model.sources(), 1 << 20, topology);  // two files
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(topology.host_of.at(static_cast<std::size_t>(parts[0].rank)) +
                topology.host_of.at(static_cast<std::size_t>(parts[1].rank)),
            1);
}

TEST(Checkpoint, DamageIsNamedByFileAndTensor) {
  const Folder folder;
  write_steps(folder / "c", 1);
  const std::string path = folder / "c/step-00000001";
  const std::string file = path + "/model-00002-of-00002.safetensors", good = slurp(file);
  const auto with = [&](const std::string& bytes) {
    spit(file, bytes);
    return why_not(path);
  };
  std::string flipped = good;
  // the last tensors are 11 small values
  flipped.at(good.size() - 100) = static_cast<char>(flipped.at(good.size() - 100) ^ 1);
  EXPECT_EQ(with(flipped), file + ": damaged: tensor 'weight[8192:12300]': its SHA-256 is not the manifest's");
  flipped = good;
  flipped[12] = static_cast<char>(flipped[12] ^ 1);
  EXPECT_EQ(with(flipped), file + ": damaged: its header's SHA-256 is not the manifest's");
  EXPECT_EQ(with(good.substr(0, 100)),
            file + ": damaged: expected " + std::to_string(good.size()) + " bytes, found 100");
  fs::remove(file);
  EXPECT_EQ(why_not(path), file + ": missing");
  spit(file, good);
  EXPECT_EQ(load_value(path), 1);
}

TEST(Checkpoint, EveryFlippedByteIsNoticed) {
  const Folder folder;
  write_steps(folder / "c", 1);
  const std::string path = folder / "c/step-00000001";
  int places = 0;
  for (const auto& name : names_in(path)) {
    const std::string good = slurp(path + "/" + name);
    for (std::size_t at = 0; at < good.size(); at += 97, ++places) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 4);
      spit(path + "/" + name, bad);
      std::string why;
      bool sound = true;
      try {
        sound = read_checkpoint(path, why).has_value();
      } catch (const Error& error) {
        sound = error.code() != ExitCode::usage;  // in the number of the format itself
      }
      ASSERT_FALSE(sound) << name << " at " << at;
      if (places % 64 != 0) at += 1009;  // most positions behave alike; all would take long
    }
    spit(path + "/" + name, good);
  }
  EXPECT_GT(places, 60);
  EXPECT_EQ(load_value(path), 1);
}

TEST(Checkpoint, ManifestsSayWhatIsWrong) {
  const Folder folder;
  write_steps(folder / "c", 1);
  const std::string path = folder / "c/step-00000001", file = path + "/manifest.json", good = slurp(file);
  spit(file, good.substr(0, good.size() / 2));
  EXPECT_EQ(why_not(path), file + ": damaged: it is not the JSON that was written");
  std::string other = good;
  other.replace(other.find("\"samples\": 32"), 13, "\"samples\": 33");
  spit(file, other);
  EXPECT_EQ(why_not(path), file + ": damaged: its SHA-256 is not the one in its last line");
  fs::remove(file);
  EXPECT_EQ(why_not(path), path + ": no manifest.json");
  spit(file, R"({"format": 3})");
  EXPECT_EQ(error_of([&] { (void)why_not(path); }, ExitCode::usage),
            file + ": expected format 1 to 2, found 3: use the lockstep that wrote it, or a newer one");
  spit(file, R"({"format": 2})");
  EXPECT_EQ(why_not(path), file + ": damaged: its SHA-256 is not the one in its last line");
}

TEST(Checkpoint, TheOneBeforeADamagedManifestIsTaken) {
  const Folder folder;
  RunDirectory run(folder / "run");
  write_steps(run.checkpoints(), 3);
  const std::string file = run.checkpoints() + "/step-00000003/manifest.json";
  spit(file, "");
  const auto any = [](const Checkpoint&) {};
  const auto as_it_is = [](const std::string& path) { return path; };
  std::vector<std::string> notes;
  auto candidates = resume_candidates("auto", run);
  EXPECT_EQ(next_candidate(candidates, as_it_is, any, notes)->manifest.progress.step, 2);
  EXPECT_EQ(notes, std::vector<std::string>{file + ": damaged: it is not the JSON that was written"});
  EXPECT_EQ(next_candidate(candidates, as_it_is, any, notes)->manifest.progress.step, 1);
  EXPECT_FALSE(next_candidate(candidates, as_it_is, any, notes));
}

TEST(Checkpoint, ARunKnowsWhatItHasBegunWith) {
  const Folder folder;
  RunDirectory other(folder / "other"), run(folder / "run");
  write_steps(other.checkpoints(), 3);
  write_steps(run.checkpoints(), 2);
  const std::string origin = other.checkpoints() + "/step-00000003", own = run.checkpoints() + "/step-00000003";
  EXPECT_EQ(resume_candidates(origin, run), std::deque<std::string>{origin});
  EXPECT_EQ(begin_with(real_files(), open_checkpoint(origin), run, {}), own);
  EXPECT_EQ(list_checkpoints(run.checkpoints()), std::vector<std::string>{own})
      << "what was there is of another course";
  EXPECT_EQ(names_in(run.checkpoints()),
            (std::vector<std::string>{"step-00000003", "superseded-00000001", "superseded-00000002"}));
  write_steps(run.checkpoints(), 5);
  EXPECT_EQ(resume_candidates(origin, run).front(), run.checkpoints() + "/step-00000005") << "it goes on";
  remove_tree(real_files(), other.path());
  EXPECT_EQ(resume_candidates(origin, run).size(), 3U) << "what it began with may be gone";

  const std::string earlier = run.checkpoints() + "/step-00000004";
  EXPECT_EQ(resume_candidates(earlier, run), std::deque<std::string>{earlier}) << "another course";
  EXPECT_EQ(begin_with(real_files(), open_checkpoint(earlier), run, {}), earlier);
  EXPECT_EQ(list_checkpoints(run.checkpoints()).size(), 2U) << "those before it stay";
  EXPECT_EQ(resume_candidates(earlier, run).front(), earlier);
  EXPECT_EQ(resume_candidates("auto", run).front(), earlier);
}

TEST(Checkpoint, TensorsMustFit) {
  const Folder folder;
  write_steps(folder / "c", 1);
  const auto checkpoint = open_checkpoint(folder / "c/step-00000001");
  std::vector<float> values(7);
  EXPECT_EQ(error_of(
                [&] {
                  load(checkpoint, {{"bias", {{7, 1}, values}}});
                },
                ExitCode::data),
            checkpoint.path + ": tensor 'bias': expected F32 [7, 1], found F32 [7]");
  EXPECT_EQ(error_of(
                [&] {
                  load(checkpoint, {{"scale", {{7}, values}}});
                },
                ExitCode::data),
            checkpoint.path + ": it has no tensor 'scale'");
}

// As written by the version before: no tensors in the manifest, a SHA-256 for each file.
TEST(Checkpoint, FormatOneIsStillRead) {
  const Folder folder;
  const std::string path = folder / "step-00000004";
  fs::create_directories(path);
  SmallModel model;
  model.set(4);
  std::vector<NamedSpan> tensors, optimizer;
  for (const auto& source : model.sources()) {
    (source.optimizer ? optimizer : tensors).push_back({source.name, source.shape, source.values});
  }
  const std::string a = to_safetensors(tensors, {{"format", "lockstep"}}), b = to_safetensors(optimizer, {});
  spit(path + "/model.safetensors", a);
  spit(path + "/optimizer.safetensors", b);
  const auto entry = [](const std::string& bytes) {
    return "{\"bytes\": " + std::to_string(bytes.size()) + ", \"sha256\": \"" + sha256(bytes) + "\"}";
  };
  spit(path + "/manifest.json",
       R"({"format": 1, "step": 4, "samples": 128, "seed": 1, "micro_batches": 2, "job_digest": "d", "job": "{}",
           "data_digest": "e", "fingerprint": "f", "best_metric": 0.0, "has_best": false,
           "evaluations_without_improvement": 0, "finished": false, "metrics": {"loss": 0.25}, "files": {
           "model.safetensors": )" +
           entry(a) + ", \"optimizer.safetensors\": " + entry(b) + "}}");
  EXPECT_EQ(load_value(path), 4);
  EXPECT_EQ(open_checkpoint(path).manifest.progress.metrics.at("loss"), 0.25);
  spit(path + "/model.safetensors", a.substr(0, a.size() - 1) + "x");
  EXPECT_EQ(why_not(path), path + "/model.safetensors: damaged: its SHA-256 is not the manifest's");
}

TEST(Checkpoint, WhatIsKept) {
  const Folder folder;
  write_steps(folder / "c", 9, {.keep = 2, .keep_every = 4}, 3);
  EXPECT_EQ(names_in(folder / "c"),
            (std::vector<std::string>{"best", "step-00000003", "step-00000004", "step-00000008", "step-00000009"}));
  EXPECT_EQ(best_checkpoint(folder / "c"), "step-00000003");
  EXPECT_EQ(load_value(folder / "c/step-00000003"), 3);
  for (const char* other : {"../../elsewhere\n", "garbage", "\n"}) {
    spit(folder / "c/best", other);
    EXPECT_EQ(best_checkpoint(folder / "c"), "") << "it must not lead out of the folder, nor end a resume";
  }
}

TEST(Checkpoint, StepsAreSortedAsNumbers) {
  const Folder folder;
  for (const char* name : {"step-99999999", "step-100000000", "step-00000001", "step-1x", "other"}) {
    fs::create_directories(folder / name);
    spit(folder / name + std::string("/manifest.json"), "");
  }
  const auto list = list_checkpoints(folder.path());
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(step_of(list[0]), 100'000'000);
  EXPECT_EQ(step_of(list[2]), 1);
}

TEST(Checkpoint, LaterStepsAreSetAside) {
  const Folder folder;
  const std::string directory = folder / "c";
  write_steps(directory, 3);
  fs::create_directories(directory + "/step-00000002.x");
  fs::create_directories(directory + "/step-00000009");
  set_aside(real_files(), directory, 1);
  EXPECT_EQ(names_in(directory), (std::vector<std::string>{"step-00000001", "step-00000002.x", "superseded-00000002",
                                                           "superseded-00000003"}));
  write_steps(directory, 2, {.keep = 3});
  EXPECT_TRUE(fs::exists(directory + "/superseded-00000003"));  // fewer than three others
  write_steps(directory, 4, {.keep = 3});
  EXPECT_FALSE(fs::exists(directory + "/superseded-00000003"));
}

TEST(RunDirectory, HostsThatDoNotShareItAreNamed) {
  const Folder folder;
  fs::create_directories(folder / "shared");
  fs::create_directories(folder / "own");
  const auto run = [&](const std::string& of_rank_two) {
    run_in_threads(4,
                   [&](Communicator& communicator) {
                     require_shared(communicator.rank() == 2 ? of_rank_two : folder / "shared", communicator,
                                    std::chrono::seconds(60));
                   },
                   {0, 0, 1, 1});
  };
  run(folder / "shared");
  EXPECT_TRUE(fs::is_empty(folder / "shared"));
  const std::string message = error_of([&] { run(folder / "own"); }, ExitCode::cannot_create);
  EXPECT_NE(message.find("every host must share the run directory, but what rank 0 wrote there on "), std::string::npos)
      << message;
  EXPECT_NE(message.find("; put it on a file system that all hosts mount (run_directory=PATH), or set "
                         "checkpoint=never"),
            std::string::npos)
      << message;
}

TEST(RunDirectory, AHostThatAloneDoesNotShareItIsUnfit) {
  const Folder folder;
  fs::create_directories(folder / "shared");
  fs::create_directories(folder / "own");
  try {
    run_in_threads(3,
                   [&](Communicator& communicator) {
                     require_shared(communicator.rank() == 2 ? folder / "own" : folder / "shared", communicator,
                                    std::chrono::seconds(60));
                   },
                   {0, 1, 2});
    ADD_FAILURE() << "nothing was thrown";
  } catch (const UnfitHosts& error) {
    EXPECT_EQ(error.hosts().size(), 1U);
    EXPECT_NE(std::string(error.what()).find("is not seen on " + error.hosts().front() + "; put it on"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace lockstep::checkpoint
