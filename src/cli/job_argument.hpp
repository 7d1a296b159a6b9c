// Shared by all commands that take a job: the job file or run directory, the overrides, what it may name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "lockstep/run_watcher.hpp"
#include "run/train/plugins.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): another library's
class App;
}

namespace lockstep::cli {

inline constexpr const char* kCheckpointHelp =
    "auto, newest, best, a checkpoint's directory, or a .safetensors file; auto: of the job's run directory the best "
    "with "
    "early_stop.restore_best, else the newest";

/// A word such as `batch_size=256`; a path may contain a `=` after its first `/`.
[[nodiscard]] bool is_override(const std::string& word);

/// The words of a command that takes one file and overrides.
struct FileAndOverrides {
  std::string file;                    ///< empty: none was given
  std::vector<std::string> overrides;  ///< key=value
};
/// `kind`: "job file". Throws Error(usage) for a second file.
[[nodiscard]] FileAndOverrides split_words(const std::vector<std::string>& words, const std::string& kind);

struct JobArgument {
  std::string file;                    ///< empty: the embedded digits job; else a job file, a pipe ("-": stdin), or a
                                       ///< run directory
  std::vector<std::string> overrides;  ///< key=value
  std::vector<std::string> words;      ///< as given; registries() and load() split them into the two above

  std::string checkpoint;  ///< the checkpoint that was given instead of a job; set by load()

  void add_to(CLI::App& command);
  /// What the job may name: the built-in things, and those of its plugins.
  [[nodiscard]] Registries registries();
  /// Reads a job file; for a run directory or a checkpoint, the job that it was trained with. `registries`: as above.
  [[nodiscard]] JobFile load(const Registries& registries, bool need_data = true);
  /// After load(): whether a run directory or a checkpoint was given.
  bool is_saved() const;
  /// For commands whose other processes read the job, too. Throws Error(usage) if it comes from a pipe.
  void require_file();

 private:
  void split();
  [[nodiscard]] bool is_pipe();
  [[nodiscard]] const std::string& piped();
  std::optional<std::string> piped_;  ///< what was read from a pipe, once
};

inline constexpr const char* kProfileHelp = "trace these steps of every rank, as in 11-60, for `lockstep trace merge`";

/// "11-60", or one step, counted from 1; empty: none. Throws Error(usage).
[[nodiscard]] ProfileSteps profile_steps(const std::string& text);

}  // namespace lockstep::cli
