// What every command that takes a job shares: the file, the overrides, the catalogue.
#pragma once

#include <string>
#include <vector>

#include "config/config.hpp"
#include "train/catalogue.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): another library's
class App;
}

namespace lockstep::cli {

/// A word such as `batch_size=256`; a path may hold a `=` after its first `/`.
[[nodiscard]] bool is_override(const std::string& word);

struct JobArgument {
  std::string file;                    ///< empty: the embedded digits
  std::vector<std::string> overrides;  ///< key=value
  std::vector<std::string> words;      ///< as given; split into the two above by load()

  void add_to(CLI::App& command);
  [[nodiscard]] Job load(const config::Catalogue& catalogue, bool need_data = true);
};

}  // namespace lockstep::cli
