#include "fuzz/support.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "lockstep/error.hpp"

namespace lockstep::fuzz {

namespace {

constexpr std::string_view kCut = "\n--8<--\n";
constexpr std::int64_t kSamplesRead = 64;  ///< of a set: the parser treats the others alike

void check_tensor(const Feature& feature, const NamedTensor& found) {
  require(found.name == feature.name, "a tensor is named after its feature");
  require(found.tensor.dtype() == feature.spec.dtype, "a tensor has its feature's type");
  if (feature.kind == Feature::Kind::tensor) return;
  const Shape &expected = feature.spec.shape, &shape = found.tensor.shape();
  require(shape.size() == expected.size(), "a tensor has its feature's rank");
  for (std::size_t i = 0; i < shape.size(); ++i) {
    require(expected[i] == -1 || shape[i] == expected[i], "a tensor has its feature's shape");
  }
}

}  // namespace

bool accepts(const std::function<void()>& parse) {
  try {
    parse();
    return true;
  } catch (const Error& error) {
    require(error.code() != ExitCode::internal, std::string("a bad input is no bug in lockstep: ") + error.what());
    require(!std::string_view(error.what()).empty(), "an error has a message");
    return false;
  }
}

void insist(const std::string& what, const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    require(false, what + ": " + error.what());
  }
}

void require(bool holds, const std::string& what) {
  if (holds) return;
  fmt::print(stderr, "does not hold: {}\n", what);
  std::abort();
}

Folder::Folder() {
  std::error_code ignored;
  const bool in_memory = ::access("/dev/shm", W_OK) == 0;
  path_ = (in_memory ? "/dev/shm" : std::filesystem::temp_directory_path(ignored).string()) + "/fuzz-lockstep-XXXXXX";
  require(::mkdtemp(path_.data()) != nullptr, "a temporary folder can be made: " + path_);
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string Folder::put(const std::string& name, std::string_view contents) const {
  const std::string path = *this / name;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  require(file >= 0, "a file can be made: " + path);
  while (!contents.empty()) {
    const auto written = ::write(file, contents.data(), contents.size());
    require(written > 0, "a file can be written: " + path);
    contents.remove_prefix(static_cast<std::size_t>(written));
  }
  ::close(file);
  return path;
}

std::string_view take_file(std::string_view& rest) {
  const auto cut = rest.find(kCut);
  const auto file = rest.substr(0, cut);
  rest.remove_prefix(cut == std::string_view::npos ? rest.size() : cut + kCut.size());
  return file;
}

SourceOptions source(SourceKind kind, std::vector<std::string> paths) {
  SourceOptions options;
  options.kind = kind;
  options.paths = std::move(paths);
  return options;
}

void read_samples(const DataSet& set) {
  const DataSetInfo& info = set.info();
  require(set.size() >= 0, "a set's size is no negative number");
  require(!info.features.empty(), "a set has features");
  Sample sample;
  for (std::int64_t id = 0; id < std::min(set.size(), kSamplesRead); ++id) {
    (void)set.name(id);
    const auto label = set.label(id);
    require(label >= -1, "a label is -1 where there is none");
    require(info.class_names.empty() || label < std::ssize(info.class_names), "a label is the number of a class");
    if (!accepts([&] { set.read(id, sample); })) continue;
    require(sample.size() == info.features.size(), "a sample has the set's features");
    for (std::size_t i = 0; i < sample.size(); ++i) check_tensor(info.features[i], sample[i]);
    std::vector<EncodedFeature> encoded;
    if (accepts(
            [&] { require(!set.read_encoded(id, encoded) || encoded.size() == sample.size(), "as many, encoded"); }))
      continue;
    require(false, "a sample that can be read can be read encoded");
  }
}

}  // namespace lockstep::fuzz
