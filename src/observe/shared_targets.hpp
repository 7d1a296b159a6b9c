// The file of a run's targets in a folder that many runs share, where Prometheus finds all of them.
#pragma once

#include <string>

namespace lockstep::observe {

class SharedTargets {
 public:
  /// `folder` empty: none is shared. The file is called like the run directory; if another run has that name, the
  /// directory's whole path is told apart by a hash.
  SharedTargets(const std::string& folder, const std::string& name, const std::string& run_directory);

  /// Writes the file. `before`: what this run wrote last, perhaps in another process, by which it knows its own file.
  /// Throws Error.
  void write(const std::string& json, const std::string& before);
  /// Removes what write() has written: otherwise the folder would keep a file for every run that ever was.
  void withdraw();

 private:
  bool claim(const std::string& json) const;

  std::string plain_, unique_, written_;
};

}  // namespace lockstep::observe
