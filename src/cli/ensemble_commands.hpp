// The subcommands of `lockstep ensemble`, and what they share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/ranks.hpp"
#include "run/ensemble/members.hpp"

namespace lockstep::cli {

/// The members, and the ranks that they compute on.
struct EnsembleArguments {
  std::vector<std::string> words;  ///< directories and overrides
  std::string checkpoint = "auto", log = "people";
  RankOptions ranks;
  std::string job;  ///< distill: the student's; empty: that of the first member

  void add_to(CLI::App& command);
  /// `json`: what --log json writes to stdout.
  void add_log_to(CLI::App& command, const std::string& json);
  std::vector<std::string> places() const;     ///< words that are no overrides
  std::vector<std::string> overrides() const;  ///< of the members' jobs
  /// The ensemble's directory, or empty if several places were given.
  std::string directory() const;
};

inline constexpr const char* kMembersHelp =
    "an ensemble's directory, or those of runs; overrides key=value of the members' jobs";

using EnsembleBody = std::function<int(ensemble::Members&, Communicator&, const Registries&)>;
/// Loads the members on every rank and calls `body` there; returns the exit code.
int run_with_members(EnsembleArguments& arguments, const EnsembleBody& body);

/// Weights of the members that `lockstep ensemble eval` has fitted, in the ensemble's directory.
void write_fitted_weights(const std::string& directory, const std::vector<double>& weights,
                          const ensemble::Members& members);
/// Throws Error(data) if there are none, or if they are other members'.
[[nodiscard]] std::vector<double> read_fitted_weights(const std::string& directory, const ensemble::Members& members);

void add_ensemble_train(CLI::App& ensemble, Action& run);
void add_ensemble_eval(CLI::App& ensemble, Action& run);
void add_ensemble_predict(CLI::App& ensemble, Action& run);
void add_ensemble_soup(CLI::App& ensemble, Action& run);
void add_ensemble_distill(CLI::App& ensemble, Action& run);

}  // namespace lockstep::cli
