#include "run/checkpoint/checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "core/digest.hpp"
#include "core/files.hpp"
#include "core/untrusted.hpp"
#include "lockstep/error.hpp"

namespace lockstep::checkpoint {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";

/// The line in the file `best`; nullopt if there is no such file.
std::optional<std::string> content_of_best(const std::string& checkpoints) {
  auto name = read_whole_file(checkpoints + "/best");
  while (name && !name->empty() && name->back() == '\n') name->pop_back();
  return name;
}

bool names_a_step(const std::string& name) {
  return is_plain_name(name) && step_of(name);
}

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  throw Error(ExitCode::data, fmt::format("{}: damaged: {}", path, what));
}

// The header is checked against its SHA-256 before anything in it is used.
void check_header(const std::string& bytes, const SavedFile& file, const std::string& path) {
  std::uint64_t length = 0;
  if (bytes.size() >= sizeof length) std::copy_n(bytes.data(), sizeof length, reinterpret_cast<char*>(&length));
  const auto header = std::string_view(bytes).substr(0, sizeof length + std::min<std::uint64_t>(length, bytes.size()));
  if (sha256(header) != file.header_sha256) damaged(path, "its header's SHA-256 is not the manifest's");
}

void check_pieces(const Checkpoint& checkpoint, const std::string& file, const SafetensorsFile& part) {
  for (const auto& tensor : checkpoint.manifest.tensors) {
    for (const auto& piece : tensor.pieces) {
      if (piece.file != file || piece.sha256.empty()) continue;
      const std::string name = piece_name(tensor, piece);
      const auto found = part.tensors().find(name);
      if (found == part.tensors().end()) damaged(part.name(), fmt::format("it has no tensor '{}'", name));
      if (sha256(found->second.bytes) != piece.sha256) {
        damaged(part.name(), fmt::format("tensor '{}': its SHA-256 is not the manifest's", name));
      }
    }
  }
}

void check_target(const Checkpoint& checkpoint, const std::string& name, const Target& target,
                  const SavedTensor* saved) {
  if (saved == nullptr) throw Error(ExitCode::data, fmt::format("{}: it has no tensor '{}'", checkpoint.path, name));
  if (saved->shape != target.shape) {
    throw Error(ExitCode::data, fmt::format("{}: tensor '{}': expected F32 {}, found F32 {}", checkpoint.path, name,
                                            to_string(target.shape), to_string(saved->shape)));
  }
  std::int64_t at = 0;
  bool whole = true;
  for (const auto& piece : saved->pieces) {
    whole = whole && piece.begin == at && piece.end >= piece.begin;
    at = piece.end;
  }
  if (!whole || at != elements(target.shape)) {
    damaged(checkpoint.path + "/manifest.json", fmt::format("the pieces of tensor '{}' do not make it whole", name));
  }
}

std::string read_verified(const Checkpoint& checkpoint, const std::string& name,
                          const std::function<void()>& read_some) {
  const SavedFile& file = checkpoint.manifest.files.at(name);
  const std::string path = checkpoint.path + "/" + name;
  auto bytes = read_whole_file(path, read_some);
  if (!bytes) throw Error(ExitCode::data, path + ": missing");
  if (bytes->size() != file.bytes) {
    damaged(path, fmt::format("expected {} bytes, found {}", file.bytes, bytes->size()));
  }
  if (!file.sha256.empty() && sha256(*bytes) != file.sha256) damaged(path, "its SHA-256 is not the manifest's");
  if (!file.header_sha256.empty()) check_header(*bytes, file, path);
  return std::move(*bytes);
}

// Format 1 did not list tensors: take those in its files.
void list_tensors(Checkpoint& checkpoint) {
  for (const auto& [name, file] : checkpoint.manifest.files) {
    const auto part = read_part(checkpoint, name);
    for (const auto& [tensor, loaded] : part.tensors()) {
      checkpoint.manifest.tensors.push_back({tensor, loaded.shape, {{name, 0, elements(loaded.shape), ""}}});
    }
  }
}

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  return fmt::format("{}{:08}", kPrefix, step);
}

std::optional<std::int64_t> step_of(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::int64_t step = 0;
  const char* end = name.data() + name.size();
  const auto [stopped, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return step;
}

std::vector<std::string> list_checkpoints(const std::string& checkpoints) {
  std::vector<std::string> list;
  for (const auto& name : names_in(checkpoints)) {
    const std::string path = checkpoints + "/" + name;
    if (step_of(name) && is_there(path + "/manifest.json")) list.push_back(path);
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return step_of(a) > step_of(b); });
  return list;
}

namespace {

/// A link, or a copy where the file system has none.
void share_file(FileSystem& files, const std::string& from, const std::string& to,
                const std::function<void()>& advance) {
  constexpr std::size_t kPiece = std::size_t{8} << 20;
  std::error_code unlinked;
  fs::create_hard_link(from, to, unlinked);
  if (advance) advance();
  if (!unlinked) return;
  auto source = InputFile::open(from);
  if (!source) throw Error(ExitCode::infrastructure, from + ": is gone while it is copied");
  const auto target = files.create(to);
  std::vector<std::byte> piece(std::min<std::size_t>(kPiece, source->size()));
  while (const std::size_t some = piece.empty() ? 0 : source->read(piece)) {
    target->write(std::span(piece).first(some));
    if (advance) advance();
  }
  target->sync();
}

}  // namespace

std::string share_checkpoint(const std::string& from, const std::string& to, std::int64_t step,
                             const std::function<void()>& advance, FileSystem& files) {
  const std::string manifest = "/manifest.json";
  std::string target = to + "/" + checkpoint_name(step);
  if (is_there(target + manifest)) return target;
  if (!is_there(from + manifest)) {
    throw Error(ExitCode::data, from + ": expected a checkpoint, from which another run goes on, found none");
  }
  remove_tree(files, target);
  make_directories(files, target);
  for (const auto& name : names_in(from)) {
    if ("/" + name != manifest) share_file(files, from + "/" + name, target + "/" + name, advance);
  }
  files.sync_directory(target);
  share_file(files, from + manifest, target + manifest, advance);  // last: without it there is no checkpoint
  files.sync_directory(target);
  return target;
}

std::string best_checkpoint(const std::string& checkpoints) {
  const auto name = content_of_best(checkpoints);
  return name && names_a_step(*name) ? *name : "";
}

std::string damage_of_best(const std::string& checkpoints) {
  const auto name = content_of_best(checkpoints);
  if (!name || names_a_step(*name)) return "";
  return fmt::format("{}/best: expected the name of a checkpoint, such as {}, found {}", checkpoints,
                     checkpoint_name(120), name->empty() ? "nothing" : fmt::format("'{:.40}'", *name));
}

Checkpoint open_checkpoint(const std::string& directory) {
  const std::string path = directory + "/manifest.json";
  const auto text = read_whole_file(path);
  if (!text) throw Error(ExitCode::data, directory + ": no manifest.json");
  Checkpoint checkpoint{directory, parse_manifest(*text, path)};
  if (checkpoint.manifest.format == 1) list_tensors(checkpoint);
  return checkpoint;
}

std::optional<std::string> job_of_manifest(const std::string& manifest, std::string& why) {
  try {
    const auto text = read_whole_file(manifest);
    if (text) return parse_manifest(*text, manifest).progress.job;
    why = manifest + ": missing";
  } catch (const Error& error) {
    why = error.what();
  }
  return std::nullopt;
}

SafetensorsFile read_part(const Checkpoint& checkpoint, const std::string& file,
                          const std::function<void()>& read_some) {
  auto part = SafetensorsFile::parse(read_verified(checkpoint, file, read_some), checkpoint.path + "/" + file);
  check_pieces(checkpoint, file, part);
  return part;
}

std::vector<std::string> find_damage(const Checkpoint& checkpoint, const std::function<void()>& read_some) {
  std::vector<std::string> list;
  for (const auto& [name, file] : checkpoint.manifest.files) {
    try {
      (void)read_part(checkpoint, name, read_some);
    } catch (const Error& error) {
      if (error.code() != ExitCode::data) throw;
      list.emplace_back(error.what());
    }
  }
  return list;
}

std::optional<Checkpoint> read_checkpoint(const std::string& directory, std::string& why,
                                          const std::function<void()>& read_some) {
  try {
    auto checkpoint = open_checkpoint(directory);
    const auto damage = find_damage(checkpoint, read_some);
    if (damage.empty()) return checkpoint;
    why = fmt::format("{}", fmt::join(damage, "; "));
  } catch (const Error& error) {
    if (error.code() != ExitCode::data) throw;  // intact, but not for this program
    why = error.what();
  }
  return std::nullopt;
}

void add_targets(const exec::TensorBlock& block, const std::string& suffix, Targets& targets) {
  for (std::size_t i = 0; i < block.size(); ++i) {
    targets[block.name(i) + suffix] = {block.shape(i), block.at(i), block.own(i)};
  }
}

std::map<std::string, std::vector<Copy>> plan_copies(const Checkpoint& checkpoint, const Targets& targets) {
  std::map<std::string, const SavedTensor*> saved;
  for (const auto& tensor : checkpoint.manifest.tensors) saved[tensor.name] = &tensor;
  std::map<std::string, std::vector<Copy>> copies;
  for (const auto& [name, target] : targets) {
    const auto found = saved.find(name);
    check_target(checkpoint, name, target, found == saved.end() ? nullptr : found->second);
    const auto own = target.own.value_or(std::vector<exec::Extent>{{0, elements(target.shape)}});
    for (const auto& piece : found->second->pieces) {
      const Shape shape = found->second->pieces.size() == 1 ? target.shape : Shape{piece.end - piece.begin};
      for (const exec::Extent& wanted : own) {
        const std::int64_t begin = std::max(piece.begin, wanted.begin), end = std::min(piece.end, wanted.end);
        if (begin >= end && wanted.begin < wanted.end) continue;
        copies[piece.file].push_back(
            {piece_name(*found->second, piece), shape, begin - piece.begin, target.values.subspan(begin, end - begin)});
      }
    }
  }
  return copies;
}

void load(const Checkpoint& checkpoint, const Targets& targets) {
  for (const auto& [file, copies] : plan_copies(checkpoint, targets)) {
    const auto part = read_part(checkpoint, file);
    for (const auto& copy : copies) part.copy(copy.name, copy.shape, copy.to, copy.first);
  }
}

}  // namespace lockstep::checkpoint
