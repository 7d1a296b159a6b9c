#include "observe/shared_targets.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "core/digest.hpp"
#include "core/files.hpp"

namespace lockstep::observe {

SharedTargets::SharedTargets(const std::string& folder, const std::string& name, const std::string& run_directory) {
  if (folder.empty()) return;
  constexpr std::size_t kDigits = 8;
  std::error_code ignored;
  Sha256 hash;
  hash.add(std::filesystem::weakly_canonical(run_directory, ignored).string());
  plain_ = fmt::format("{}/{}.json", folder, name);
  unique_ = fmt::format("{}/{}-{}.json", folder, name, hash.hex().substr(0, kDigits));
}

// Of two runs that start at the same time, one gets the name.
bool SharedTargets::claim(const std::string& json) const {
  const std::string fresh = unique_ + ".claim";
  write_whole_file(fresh, json);
  const bool claimed = ::link(fresh.c_str(), plain_.c_str()) == 0;
  ::unlink(fresh.c_str());
  return claimed;
}

void SharedTargets::write(const std::string& json, const std::string& before) {
  if (plain_.empty()) return;
  if (written_.empty()) {
    const auto there = read_whole_file(plain_);
    const bool own = there ? *there == before : claim(json);
    written_ = own ? plain_ : unique_;
  }
  write_whole_file(written_, json);
}

void SharedTargets::withdraw() {
  std::error_code ignored;
  if (!written_.empty()) std::filesystem::remove(written_, ignored);
}

}  // namespace lockstep::observe
