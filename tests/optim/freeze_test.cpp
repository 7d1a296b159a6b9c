// Groups that are frozen until an update, against optimizers by hand, in double, of the updater's own gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "optim/updater_bench.hpp"

namespace lockstep::optim {

namespace {

struct Slow {
  double parameter, first = 0, second = 0;
};

/// AdamW's step number t, from 1, with its defaults and a weight decay of 0.1.
void adamw(Slow& of, double gradient, double rate, bool decays, int t) {
  of.first += 0.1 * (gradient - of.first);
  of.second += 0.001 * (gradient * gradient - of.second);
  if (decays) of.parameter *= 1 - rate * 0.1;
  of.parameter -= rate * (of.first / (1 - std::pow(0.9, t))) / (std::sqrt(of.second / (1 - std::pow(0.999, t))) + 1e-8);
}

/// SGD with a momentum of 0.9 and a weight decay of 0.1.
void sgd_by_hand(Slow& of, double gradient, double rate, bool decays, int /*t*/) {
  of.first = 0.9 * of.first + gradient + (decays ? 0.1 * of.parameter : 0);
  of.parameter -= rate * of.first;
}

using Step = void (*)(Slow& of, double gradient, double rate, bool decays, int t);

/// The group of "linear1.*" begins with update `until`, at three times the rate.
void expect_as_by_hand(OptimizerOptions options, Step step, int until, double clip_norm) {
  options.groups = {{.match = {"linear1.*"}, .rate = 3, .freeze_until = {static_cast<double>(until), false}}};
  UpdaterBench bench;
  std::map<std::string, std::vector<Slow>> all;
  bench.watch_first = [&](const Model& model) {
    for (std::size_t p = 0; p < model.parameters.size(); ++p) {
      for (const float value : model.parameters.at(p)) all[model.parameters.name(p)].push_back({.parameter = value});
    }
  };
  int update = 0;
  bench.watch = [&](const Model& model, const exec::TensorBlock& gradient) {
    double squares = 0;
    for (std::size_t p = 0; p < gradient.size(); ++p) {
      const std::string& name = gradient.name(p);
      const bool is_in_group = name.starts_with("linear1."), is_frozen = is_in_group && update < until;
      std::vector<Slow>& slow = all.at(name);
      for (std::size_t i = 0; i < slow.size(); ++i) {
        const auto given = static_cast<double>(gradient.at(p)[i]);
        squares += given * given;
        const auto found = static_cast<double>(model.parameters.at(p)[i]);
        if (is_frozen) {
          ASSERT_EQ(given, 0) << name;
          ASSERT_EQ(found, slow[i].parameter) << name;
          for (const auto& state : model.optimizer) ASSERT_EQ(state.at(p)[i], 0) << name;
          continue;
        }
        step(slow[i], given, is_in_group ? 0.3 : 0.1, name.ends_with(".weight") && !name.starts_with("batch_norm"),
             update + 1 - (is_in_group ? until : 0));
        ASSERT_NEAR(found, slow[i].parameter, 2e-5) << name << ", element " << i << ", update " << update;
        ASSERT_NEAR(static_cast<double>(model.optimizer[0].at(p)[i]), slow[i].first, 2e-5) << name;
      }
    }
    if (clip_norm > 0) {
      EXPECT_NEAR(std::sqrt(squares), clip_norm, 1e-4 * clip_norm);  // of what is not frozen
    }
    ++update;
  };
  (void)bench.on_host(options, clip_norm);
  EXPECT_EQ(update, kUpdaterSteps);
}

}  // namespace

TEST(FreezeUntil, IsAnOptimizerThatBeginsLater) {
  for (const int until : {0, 1, 2, 5}) {
    for (const double clip_norm : {0.0, 0.5}) {
      expect_as_by_hand(decaying("adamw"), adamw, until, clip_norm);
      expect_as_by_hand(sgd(0.9, false, 0.1), sgd_by_hand, until, clip_norm);
    }
  }
}

// Every optimizer: a group begins as all do at the first step, from zeros and with a count of 0.
TEST(FreezeUntil, OfEverythingIsALaterBeginning) {
  const UpdaterBench known;
  for (const OptimizerDef* optimizer : known.optimizers.all()) {
    const std::string name = optimizer->name;
    OptimizerOptions options{name, {}};
    const auto run = [&](int until, int from) {
      OptimizerOptions grouped = options;
      grouped.groups = {{.match = {"*"}, .freeze_until = {static_cast<double>(until), false}}};
      UpdaterBench bench;
      bench.first_sums = from;
      std::vector<std::vector<float>> after;
      bench.watch = [&](const Model& model, const exec::TensorBlock& /*gradient*/) {
        std::vector<float>& values = after.emplace_back();
        for (std::size_t p = 0; p < model.parameters.size(); ++p) {
          values.insert(values.end(), model.parameters.at(p).begin(), model.parameters.at(p).end());
        }
      };
      (void)bench.on_host(grouped, 0.5);
      return after;
    };
    const auto late = run(1, 0), early = run(0, 1);  // the sums of updates 1 and 2 are the early run's 0 and 1
    EXPECT_EQ(late[1], early[0]) << name;
    EXPECT_EQ(late[2], early[1]) << name;
    EXPECT_NE(late[0], late[1]) << name;
  }
}

}  // namespace lockstep::optim
