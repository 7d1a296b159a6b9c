// Journal: what has been decided and what came of it, one JSON object a line, appended and synced before anything
// follows from it. Reading it gives the study as it was, so a sweep that was killed goes on from there.
//
//   {"record":"sweep", ...}     the first line: the sweep that the directory belongs to
//   {"record":"begin", ...}     a new trial and its settings; with `from`, it goes on from another one's checkpoint
//   {"record":"promote", ...}   a paused trial is trained further
//   {"record":"result", ...}    a trial got to where it was to go
//   {"record":"failure", ...}   an attempt ended with an error; `counts` is false if that is not the trial's fault
#pragma once

#include <functional>
#include <string>

#include "config/sweep.hpp"
#include "core/files.hpp"
#include "tools/sweep/method.hpp"

namespace lockstep::sweep {

class Journal {
 public:
  /// Opens or creates the file. When all of it has been read, a last line that was not written to its end is cut off;
  /// repaired() says so. Throws Error(configuration) if it is another sweep's, Error(data) for a line that is no
  /// record, Error(infrastructure) if it cannot be read or written.
  Journal(std::string path, const config::SweepFile& sweep);

  void begin(const Begin& decision);
  void promote(const Promote& decision);
  void result(int trial, const Result& result);
  void failure(int trial, const Failure& failure);

  const Study& study() const { return study_; }
  /// What was cut off, for people; empty: nothing.
  const std::string& repaired() const { return repaired_; }
  /// Called with each line from now on.
  void on_line(std::function<void(const std::string&)> call) { on_line_ = std::move(call); }

 private:
  void read();
  void append(const std::string& line);
  void cut_torn_line(std::size_t whole, std::size_t read);
  std::string path_, repaired_;
  OpenFile file_;
  Study study_;
  std::string canonical_;
  std::function<void(const std::string&)> on_line_;
};

}  // namespace lockstep::sweep
