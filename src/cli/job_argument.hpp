// What every command that takes a job shares: the file or the directory of a run, the overrides, the catalogue.
#pragma once

#include <string>
#include <vector>

#include "config/config.hpp"
#include "lockstep/run_watcher.hpp"
#include "train/catalogue.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): another library's
class App;
}

namespace lockstep::cli {

inline constexpr const char* kCheckpointHelp =
    "newest, best, a checkpoint's directory, or a .safetensors file; newest: of the job's run directory";

/// A word such as `batch_size=256`; a path may hold a `=` after its first `/`.
[[nodiscard]] bool is_override(const std::string& word);

struct JobArgument {
  std::string file;                    ///< empty: the embedded digits; else a job file, or a run's directory
  std::vector<std::string> overrides;  ///< key=value
  std::vector<std::string> words;      ///< as given; split into the two above by load()

  std::string checkpoint;  ///< the checkpoint that was given instead of a job; by load()

  void add_to(CLI::App& command);
  /// A job file is read. Of the directory of a run, or of a checkpoint, the job is the one that it was trained with.
  [[nodiscard]] JobFile load(const config::Catalogue& catalogue, bool need_data = true);
  /// After load(): a run's directory or a checkpoint was given.
  [[nodiscard]] bool is_saved() const;
};

inline constexpr const char* kProfileHelp = "trace these steps of every rank, as in 11-60, for `lockstep trace merge`";

/// "11-60", or one step, counted from 1; empty: none. Throws Error(usage).
[[nodiscard]] ProfileSteps profile_steps(const std::string& text);

}  // namespace lockstep::cli
