#include "data/input/source_indexes.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "comm/transport/host_leader.hpp"
#include "core/remote_path.hpp"
#include "data/bytes.hpp"
#include "data/content_digest.hpp"
#include "data/open.hpp"
#include "data/path.hpp"

namespace lockstep::input {

namespace {

/// Identifies the files or folders of a source on this host.
std::string identity_of(const SourceOptions& source) {
  std::string text = std::string(name_of(source.kind)) + source.reader;
  for (const auto& path : source.paths) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) status = {};
    text += fmt::format("\n{} {} {}", data::whole_path(path), status.st_dev, status.st_ino);
  }
  return text;
}

}  // namespace

SourceIndexes SourceIndexes::read(const std::string& bytes, const ReaderRegistry& readers) {
  SourceIndexes indexes("", readers);
  data::ByteReader reader(bytes, "the index of another rank ends too early");
  while (!reader.rest().empty()) {
    const std::string set = reader.text();
    indexes.leaders_[set] = reader.text();
    indexes.notes_[set] = data::IndexNotes::read(reader.text());
  }
  return indexes;
}

// Processes that start together would read the same files to make the same index: trials of a sweep, members of an
// ensemble. Whoever makes one waits for no other, so there is no circle; and whoever has waited in vain, since an index
// could not be stored, makes its own at once, beside the others.
std::optional<data::IndexNotes> SourceIndexes::cached(const SourceOptions& source) {
  auto found = cache_.find(source);
  const std::string path = cache_.path_of(source);
  if (found || path.empty() || source.paths.empty() || source.kind == SourceKind::own) return found;
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
  if (failed) return found;
  CacheWait wait;
  if (!making_.empty()) wait.limit = {};
  CacheLock lock = lock_to_make(path, wait);
  if (lock.file || lock.waited) found = cache_.find(source);
  if (lock.file && !found && !lock.waited) {
    making_.push_back(std::move(lock));
  } else {
    unlock_made(lock);
  }
  return found;
}

void SourceIndexes::release() {
  for (auto& lock : making_) unlock_made(lock);
  making_.clear();
}

std::shared_ptr<const DataSet> SourceIndexes::open(const std::string& set, SourceOptions source,
                                                   const DataSetInfo* like) {
  if (source.part == SourcePart::automatic) {
    source.part = set == "validation" || set == "test" ? SourcePart::test : SourcePart::train;
  }
  data::FileWatch& watched = watched_[set];
  for (const auto& path : source.paths) watched.add(path);
  for (const auto& path : {source.labels, source.weights, source.tokenizer_file}) watched.add(path);
  if (auto found = cached(source)) notes_[set] = std::move(*found);
  sources_[set] = source;
  if (!leaders_.empty() && reads(set)) notes_[set] = {};
  data::IndexOptions options;
  options.like = like;
  options.notes = &notes_[set];
  options.readers = readers_;
  options.targets = &targets_[set];
  std::shared_ptr<const DataSet> opened = data::open(source, options);
  data::IndexNotes& notes = notes_[set];
  watched.add(notes.watch());
  for (const auto& path : source.paths) {
    if (is_remote(path) || data::kind_of(path) != data::PathKind::folder) continue;
    const auto make = [&] { return data::path_digest(path, true); };
    folder_digests_[path] = notes.is_made_from_folder(path) ? notes.take("digest of " + path, make) : make();
  }
  if (!opened->info().content_in_digest) large_[set] = opened;
  return opened;
}

void SourceIndexes::open_once_a_host(Communicator* communicator, const std::function<void()>& open) {
  if (communicator == nullptr || communicator->size() == 1) return open();
  bool leads = false;
  const std::string made = comm::make_once_a_host(*communicator, [&] {
    leads = true;
    open();
    return write();
  });
  if (leads) return;
  *this = read(made, *readers_);
  open();
}

std::vector<IndexReport> SourceIndexes::keep() {
  std::vector<IndexReport> reports;
  for (const auto& [set, source] : sources_) {
    const data::IndexNotes& notes = notes_[set];
    if (!notes.are_of_files()) continue;
    IndexReport report{set, !notes.made_any(), cache_.path_of(source), ""};
    if (notes.made_any()) report.not_kept = cache_.store(source, notes);
    if (!report.not_kept.empty()) report.file.clear();
    reports.push_back(std::move(report));
  }
  release();
  return reports;
}

std::string SourceIndexes::changed() const {
  for (const auto& [set, watched] : watched_) {
    std::string change = reads(set) ? watched.changed() : "";
    if (!change.empty()) return change;
  }
  return "";
}

std::map<std::string, std::string> SourceIndexes::path_digests() const {
  std::map<std::string, std::string> digests = folder_digests_;
  for (const auto& [set, source] : sources_) {
    for (const auto& path : watched_.at(set).paths()) digests[path] = data::path_digest(path, !large_.contains(set));
    for (const auto& path : source.paths) {
      if (is_remote(path) && !digests.contains(path)) digests[path] = data::path_digest(path, true);
    }
  }
  for (const auto& path : lists_) digests[path] = data::path_digest(path, true);
  return digests;
}

std::vector<std::string> SourceIndexes::large() const {
  std::vector<std::string> names;
  for (const auto& [set, opened] : large_) names.push_back(set);
  return names;
}

bool SourceIndexes::reads(const std::string& set) const {
  const auto leaders = leaders_.find(set);
  return leaders == leaders_.end() || leaders->second != identity_of(sources_.at(set));
}

std::string SourceIndexes::content(const std::string& set, const std::function<bool(double)>& go_on) {
  data::IndexNotes& notes = notes_[set];
  constexpr const char* kNote = "content";
  if (!notes.has(kNote)) {
    auto digest = data::content_digest(*large_.at(set), go_on);
    if (!digest) return "";
    (void)notes.take(kNote, [&] { return std::move(*digest); });
    (void)cache_.store(sources_.at(set), notes);  // if this fails, the next run reads it again
  }
  return notes.take(kNote, [] { return std::string(); });
}

std::string SourceIndexes::write() const {
  std::string out;
  for (const auto& [set, notes] : notes_) {
    const auto source = sources_.find(set);
    data::append_text(out, set);
    data::append_text(out, source == sources_.end() ? "" : identity_of(source->second));
    data::append_text(out, notes.write());
  }
  return out;
}

}  // namespace lockstep::input
