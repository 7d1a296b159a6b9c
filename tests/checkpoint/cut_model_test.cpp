// Checkpoints of a model whose parts are on different ranks: the files, what is read back, what initializes it and the
// hash of its parameters equal those of the uncut model, however it is cut and wherever the parts are.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <set>

#include "checkpoint/faulty_files.hpp"
#include "checkpoint/support.hpp"
#include "comm/transport/work_together.hpp"
#include "lockstep/error.hpp"
#include "lockstep/random.hpp"
#include "run/checkpoint/reader.hpp"
#include "run/checkpoint/saved_model.hpp"

namespace lockstep::checkpoint {

namespace {

using std::chrono::seconds;

const std::vector<optim::OptimizerState> kStates = {{"momentum"}};

/// The location of a model's parts. The first and the last part share a tensor.
struct Placement {
  std::vector<std::vector<int>> ranks_of_part;
  [[nodiscard]] int size() const {
    int size = 0;
    for (const auto& ranks : ranks_of_part) size += static_cast<int>(ranks.size());
    return size;
  }
};

const std::vector<Placement> kPlacements = {
    {{{0}}},
    {{{0, 1, 2}}},
    {{{0}, {1}}},
    {{{0}, {1, 2}}},
    {{{1, 2, 3}, {0}}},
    {{{0}, {1}, {2}}},
    {{{2}, {1}, {0}}},
    {{{0, 1}, {2}, {3, 4, 5}}},
    {{{1, 4}, {0, 3}, {2, 5, 6}}},
};

/// A tensor of the whole model: of one of 64 layers, which are cut into parts in order, or shared by both ends (-1).
struct LayerTensor {
  std::string name;
  Shape shape;
  int layer;
};

std::vector<LayerTensor> parameters_of_layers() {
  std::vector<LayerTensor> list = {{"embedding", {3, 4100}, -1}};  // larger than a file
  for (int i = 0; i < 64; ++i) list.push_back({"layer" + std::to_string(i), {7 * i, 23}, i});
  list.push_back({"last", {2, 8200}, 63});
  return list;
}

const std::vector<LayerTensor> kParameters = parameters_of_layers();
const std::vector<LayerTensor> kRunningStatistics = {{"mean0", {2, 2}, 0}, {"mean40", {5}, 40}, {"mean63", {9000}, 63}};

WholeModel whole_on(const Placement& placement) {
  Graph graph;
  const std::size_t count = placement.ranks_of_part.size();
  std::vector<GraphPart> parts(count);
  const auto add = [&](const std::vector<LayerTensor>& tensors, std::vector<ValueId>& ids,
                       std::vector<std::size_t> GraphPart::*list) {
    for (const auto& tensor : tensors) {
      const std::size_t part = tensor.layer < 0 ? 0 : static_cast<std::size_t>(tensor.layer) * count / 64;
      (parts[part].*list).push_back(ids.size());
      if (tensor.layer < 0 && count > 1) (parts[count - 1].*list).push_back(ids.size());
      ids.push_back(static_cast<ValueId>(graph.values.size()));
      graph.values.emplace_back();
      graph.values.back().name = tensor.name;
      graph.values.back().spec = {DType::f32, tensor.shape};
    }
  };
  add(kParameters, graph.parameters, &GraphPart::parameters);
  add(kRunningStatistics, graph.states, &GraphPart::states);
  return whole_of(graph, parts, placement.ranks_of_part);
}

/// A rank's part of the model; all values are 0.
optim::Model part_on(const WholeModel& whole, int rank) {
  Graph graph;
  const auto add = [&](const std::vector<WholeModel::Tensor>& tensors, std::vector<ValueId>& ids) {
    for (const auto& tensor : tensors) {
      if (!has(tensor.ranks, rank)) continue;
      Value value;
      value.name = tensor.name;
      value.spec = {DType::f32, tensor.shape};
      ids.push_back(static_cast<ValueId>(graph.values.size()));
      graph.values.push_back(std::move(value));
    }
  };
  add(whole.parameters, graph.parameters);
  add(whole.states, graph.states);
  optim::Model model{{graph, graph.parameters}, {graph, graph.states}, {}};
  model.optimizer.emplace_back(graph, graph.parameters);
  return model;
}

/// Calls with the name of each tensor in a checkpoint, and its values.
void for_each_tensor(const optim::Model& model, const std::function<void(std::string, std::span<float>)>& call) {
  const auto all_of = [&](const exec::TensorBlock& block, const std::string& suffix) {
    for (std::size_t i = 0; i < block.size(); ++i) call(block.name(i) + suffix, block.at(i));
  };
  all_of(model.parameters, "");
  all_of(model.states, "");
  all_of(model.optimizer.at(0), ":" + kStates.front().name);
}

/// Values that identify name, element and step.
void fill(const optim::Model& model, std::int64_t step) {
  for_each_tensor(model, [&](const std::string& name, std::span<float> values) {
    const auto first = static_cast<float>(hash_name(name) % 1000 + static_cast<std::uint64_t>(step));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i) * 0x1p-13F;
  });
}

void expect_filled(const optim::Model& model, std::int64_t step) {
  std::map<std::string, std::vector<float>> found;
  for_each_tensor(model, [&](const std::string& name, std::span<float> values) {
    found[name].assign(values.begin(), values.end());
  });
  fill(model, step);
  for_each_tensor(model, [&](const std::string& name, std::span<float> values) {
    EXPECT_TRUE(std::equal(values.begin(), values.end(), found[name].begin())) << name;
  });
}

Targets targets_of(const optim::Model& model) {
  Targets targets;
  add_targets(model.parameters, "", targets);
  add_targets(model.states, "", targets);
  add_targets(model.optimizer.at(0), ":" + kStates.front().name, targets);
  return targets;
}

using OnRank = std::function<void(Communicator&, const WholeModel&, optim::Model&)>;

void run_placed(const Placement& placement, const OnRank& body) {
  const WholeModel whole = whole_on(placement);
  run_in_threads(placement.size(), [&](Communicator& communicator) {
    optim::Model own = part_on(whole, communicator.rank());
    body(communicator, whole, own);
  });
}

/// Steps 1 and 2, in files of 32 KiB.
void write_steps_of(const optim::Model& own, std::vector<TensorSource> sources, Communicator& communicator,
                    const std::string& directory) {
  FaultyFiles files;  // without faults here; avoids syncing the disk
  WriterOptions options;
  options.directory = directory;
  options.part_bytes = SmallModel::kPart;
  CheckpointWriter writer(communicator, std::move(sources), options, files);
  for (const std::int64_t step : {1, 2}) {
    fill(own, step);
    EXPECT_TRUE(writer.begin(progress_of(step), false));
    fill(own, -1);  // the copy has been taken
  }
  EXPECT_EQ(writer.finish(), "");
}

void write_placed(const Placement& placement, const std::string& directory) {
  run_placed(placement, [&](Communicator& communicator, const WholeModel& whole, optim::Model& own) {
    write_steps_of(own, sources_of(whole, own, kStates), communicator, directory);
  });
}

/// What each rank throws, which may or may not be the same on all of them.
std::vector<std::string> errors_of(const Placement& placement, ExitCode code, const OnRank& body) {
  std::mutex mutex;
  std::vector<std::string> errors(static_cast<std::size_t>(placement.size()), "no error");
  run_placed(placement, [&](Communicator& communicator, const WholeModel& whole, optim::Model& own) {
    try {
      body(communicator, whole, own);
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      EXPECT_EQ(error.code(), code);
      errors.at(static_cast<std::size_t>(communicator.rank())) = error.what();
    }
  });
  return errors;
}

}  // namespace

TEST(CutModel, FilesAreThoseOfTheUncutOne) {
  const Folder folder;
  const std::string uncut = folder / "uncut";
  const optim::Model model = part_on(whole_on(kPlacements.front()), 0);
  write_steps_of(model, sources_of(model, kStates), *make_single_communicator(), uncut);
  const auto names = names_in(uncut + "/step-00000002");
  EXPECT_GT(names.size(), 10u);
  for (const auto& placement : kPlacements) {
    const std::string directory = folder / ("p" + std::to_string(&placement - kPlacements.data()));
    write_placed(placement, directory);
    for (const char* step : {"/step-00000001/", "/step-00000002/"}) {
      ASSERT_EQ(names_in(directory + step), names);
      for (const auto& name : names) EXPECT_EQ(slurp(directory + step + name), slurp(uncut + step + name)) << name;
    }
  }
}

TEST(CutModel, WhoHasMostOfAFileWritesIt) {
  const Placement placement{{{1, 4}, {0, 3}, {2, 5, 6}}};
  const WholeModel whole = whole_on(placement);
  const Topology topology{.host_of = {0, 0, 0, 1, 1, 1, 1}, .host_names = {"a", "b"}};
  const auto tensors = sources_of(whole, part_on(whole, 0), kStates);
  const auto parts = plan_parts(tensors, SmallModel::kPart, topology);
  std::vector<std::size_t> load(7);
  std::size_t all = 0, sent = 0;
  for (const auto& part : parts) {
    std::vector<std::int64_t> elements(7);
    for (const auto& piece : part.pieces) {
      if (piece.begin == piece.end) continue;
      const auto& ranks = tensors[piece.tensor].holdings.at(0).ranks;
      for (const int rank : ranks) elements[static_cast<std::size_t>(rank)] += piece.end - piece.begin;
      ASSERT_EQ(piece.sources.size(), 1u);
      EXPECT_EQ(piece.sources[0].extent, (exec::Extent{piece.begin, piece.end}));
      const int from = piece.sources[0].rank;
      EXPECT_EQ(from, has(ranks, part.rank) ? part.rank : ranks.front());
      if (from != part.rank) sent += static_cast<std::size_t>(piece.end - piece.begin) * sizeof(float);
    }
    EXPECT_EQ(elements[static_cast<std::size_t>(part.rank)], *std::max_element(elements.begin(), elements.end()));
    load[static_cast<std::size_t>(part.rank)] += part.bytes;
    all += part.bytes;
  }
  EXPECT_GT(sent, 0u);
  EXPECT_LT(sent, all / 10);  // for files that straddle a boundary
  for (const auto& ranks : placement.ranks_of_part) {
    for (const int rank : ranks) EXPECT_GT(load[static_cast<std::size_t>(rank)], 0u) << rank;
  }
}

TEST(CutModel, IsReadWhereverItsPartsLie) {
  const Folder folder;
  write_placed(kPlacements.back(), folder.path());
  const auto checkpoint = open_checkpoint(folder / "step-00000002");
  for (const auto& placement : kPlacements) {
    run_placed(placement, [&](Communicator& communicator, const WholeModel& /*whole*/, optim::Model& own) {
      CheckpointReader reader(communicator, seconds(60));
      EXPECT_TRUE(reader.read(checkpoint).empty());
      reader.load(checkpoint, targets_of(own));
      expect_filled(own, 2);
    });
  }
}

TEST(CutModel, ATensorThatIsMissingOnOnePartIsToldOnAllRanks) {
  const Folder folder;
  write_placed(kPlacements.front(), folder.path());
  const auto checkpoint = open_checkpoint(folder / "step-00000001");
  const Placement placement{{{0, 1}, {2}, {3, 4}}};
  const auto load_without = [&](const std::set<std::string>& missing) {
    Checkpoint changed = checkpoint;
    std::erase_if(changed.manifest.tensors, [&](const auto& tensor) { return missing.contains(tensor.name); });
    return errors_of(placement, ExitCode::data,
                     [&](Communicator& communicator, const WholeModel& /*whole*/, optim::Model& own) {
                       CheckpointReader reader(communicator, seconds(60));
                       EXPECT_TRUE(reader.read(changed).empty());
                       reader.load(changed, targets_of(own));
                     });
  };
  const auto lacks = [&](const std::string& name) { return checkpoint.path + ": it has no tensor '" + name + "'"; };
  EXPECT_EQ(load_without({"layer30"}), std::vector<std::string>(5, lacks("layer30")));
  const std::string first = lacks("layer2"), middle = lacks("layer30"), last = lacks("layer63:momentum");
  EXPECT_EQ(load_without({"layer2", "layer30", "layer63:momentum"}),
            (std::vector<std::string>{first, first, middle, last, last}));
}

TEST(CutModel, TheHashIsThatOfTheUncutOne) {
  std::string uncut;
  {
    const optim::Model model = part_on(whole_on(kPlacements.front()), 0);
    fill(model, 3);
    uncut = exec::sha256_of(model.parameters);
  }
  for (const auto& placement : kPlacements) {
    run_placed(placement, [&](Communicator& communicator, const WholeModel& whole, optim::Model& own) {
      fill(own, 3);
      EXPECT_EQ(parameters_sha256(whole, own.parameters, communicator, seconds(60)), uncut);
    });
  }
}

// Each goes in two messages: `second` to the rank that writes it, and `first` or `second` to rank 0 to be hashed.
TEST(CutModel, TensorsMayBeLargerThanAMessage) {
  const Folder folder;
  FaultyFiles files;
  const auto write_on = [&](const WholeModel& whole, int ranks, const std::string& directory) {
    std::string hash;
    run_in_threads(ranks, [&](Communicator& communicator) {
      const optim::Model own = part_on(whole, communicator.rank());
      fill(own, 1);
      WriterOptions options;
      options.directory = directory;
      options.part_bytes = std::int64_t{64} << 20;
      CheckpointWriter writer(communicator, sources_of(whole, own, {}), options, files);
      EXPECT_TRUE(writer.begin(progress_of(1), false));
      EXPECT_EQ(writer.finish(), "");
      const std::string found = parameters_sha256(whole, own.parameters, communicator, seconds(60));
      if (communicator.rank() == 0) hash = found;
    });
    return hash;
  };
  const Shape first{(4 << 20) + 5}, second{(4 << 20) + 3};
  const std::string uncut = write_on({{{"first", first}, {"second", second}}, {}}, 1, folder / "uncut");
  EXPECT_EQ(uncut, write_on({{{"first", first, {1}}, {"second", second, {0}}}, {}}, 2, folder / "cut"));
  const auto names = names_in(folder / "uncut/step-00000001");
  EXPECT_EQ(names, (std::vector<std::string>{"manifest.json", "model.safetensors"}));
  for (const auto& name : names) {
    EXPECT_TRUE(slurp(folder / ("cut/step-00000001/" + name)) == slurp(folder / ("uncut/step-00000001/" + name)));
  }
}

namespace {

/// A file with all tensors except those named.
std::string weights_file(const Folder& folder, const std::set<std::string>& without = {}) {
  const optim::Model model = part_on(whole_on(kPlacements.front()), 0);
  fill(model, 8);
  std::vector<NamedSpan> tensors;
  for (const auto* block : {&model.parameters, &model.states}) {
    for (std::size_t i = 0; i < block->size(); ++i) {
      if (!without.contains(block->name(i))) tensors.push_back({block->name(i), block->shape(i), block->at(i)});
    }
  }
  spit(folder / "weights.safetensors", to_safetensors(tensors, {}));
  return folder / "weights.safetensors";
}

}  // namespace

TEST(CutModel, IsInitializedFromTheFileOfTheWhole) {
  const Folder folder;
  const InitializeOptions all{weights_file(folder), {}}, some{all.from, {"layer63", "mean*"}};
  for (const auto& placement : kPlacements) {
    run_placed(placement, [&](Communicator&, const WholeModel& whole, optim::Model& own) {
      initialize_from_file(some, {}, {}, whole, own, [] {});
      for_each_tensor(own, [&](const std::string& name, std::span<float> values) {
        const bool chosen = name == "layer63" || name.starts_with("mean");
        EXPECT_EQ(std::any_of(values.begin(), values.end(), [](float value) { return value != 0; }), chosen) << name;
      });
      EXPECT_THROW(initialize_from_file(all, {}, {}, whole, own, [] { throw comm::WorkStopped(); }), comm::WorkStopped);
      initialize_from_file(all, {}, {}, whole, own, [] {});
      for (std::size_t i = 0; i < own.optimizer.at(0).size(); ++i) {
        std::fill(own.optimizer.at(0).at(i).begin(), own.optimizer.at(0).at(i).end(), 0.0F);
      }
      for_each_tensor(own, [&](const std::string& name, std::span<float> values) {
        if (!name.ends_with(":momentum") && !values.empty()) {
          EXPECT_EQ(values.front(), static_cast<float>(hash_name(name) % 1000 + 8)) << name;
        }
      });
    });
  }
}

TEST(CutModel, MistakesOfInitializeAreThoseOfTheWhole) {
  const Folder folder;
  const Placement placement{{{0}, {1, 2}}};
  const auto errors = [&](ExitCode code, const InitializeOptions& options) {
    return errors_of(placement, code, [&](Communicator&, const WholeModel& whole, optim::Model& own) {
      initialize_from_file(options, {}, {}, whole, own, [] {});
    });
  };
  const std::string file = weights_file(folder, {"layer63"});
  EXPECT_EQ(errors(ExitCode::data, {file, {}}),
            std::vector<std::string>(3, file + ": expected 69 tensors of the model, found 68 that fit\n"
                                               "  only in the model: layer63 [441, 23]\n"
                                               "  initialize.only takes some of the parameters"));
  EXPECT_EQ(errors(ExitCode::data, {file, {"layer0"}}), std::vector<std::string>(3, "no error"));
  EXPECT_EQ(errors(ExitCode::configuration, {file, {"layer0", "layer64"}}),
            std::vector<std::string>(3,
                                     "job.initialize.only: expected a pattern over the model's parameters, but none "
                                     "matches 'layer64'; did you mean 'layer4'?"));
}

}  // namespace lockstep::checkpoint
