// The sweep for people: on a terminal a table that is redrawn in place, elsewhere a line for each change.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/spans.hpp"
#include "observe/telemetry/console.hpp"
#include "observe/telemetry/progress.hpp"
#include "tools/sweep/study.hpp"

namespace lockstep::sweep {

/// A trial that is being trained.
struct RunningTrial {
  int trial = 0;
  std::int64_t step = 0, steps = 0;  ///< steps 0: not known yet
  double value = 0;                  ///< the objective in the newest evaluation; NaN: none yet
  double seconds = 0;
};

/// Rows without escape codes, cut to `columns`: what runs, then the best trials, at most `rows` of both.
[[nodiscard]] std::vector<std::string> table_rows(const Study& study, const std::vector<RunningTrial>& running,
                                                  double seconds, std::size_t columns, std::size_t rows);

class LiveTable {
 public:
  /// On stderr. `terminal`: whether that can be redrawn.
  explicit LiveTable(bool terminal) : console_(telemetry::make_progress_console()), terminal_(terminal) {}
  /// A lasting line, above the table.
  void line(const std::string& text);
  /// Whether the table should be redrawn now; never where there is no terminal.
  bool is_due() const;
  void show(const Study& study, const std::vector<RunningTrial>& running);
  /// Takes the table away.
  void clear();
  /// "trial 7 done: accuracy 0.934 after 200 steps (learning_rate 0.01)"
  [[nodiscard]] static std::string change(const Study& study, int number);

 private:
  std::unique_ptr<telemetry::Console> console_;
  bool terminal_;
  std::size_t drawn_ = 0;  ///< rows on the screen
  Clock::time_point start_ = Clock::now(), shown_{};
};

}  // namespace lockstep::sweep
