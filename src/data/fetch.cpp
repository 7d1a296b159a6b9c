#include "data/fetch.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "core/digest.hpp"
#include "core/errno_code.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
struct FreeCurl {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};

/// One request for one file. `error`: why it ended early.
struct Download {
  const FetchFile& file;
  const FetchOptions& options;
  CURL* curl = nullptr;
  std::unique_ptr<std::FILE, CloseFile> out;
  std::uint64_t have = 0;      ///< bytes in the file so far
  std::uint64_t received = 0;  ///< bytes from the network
  bool begun = false;
  std::string error;
};

/// Called with the first bytes: the server may have ignored the request to start in the middle.
bool begin(Download& download) {
  long status = 0;  // NOLINT: libcurl's type
  curl_easy_getinfo(download.curl, CURLINFO_RESPONSE_CODE, &status);
  download.begun = true;
  if (status == 206 || download.have == 0) return true;
  download.have = 0;
  return std::freopen(nullptr, "wb", download.out.get()) != nullptr;
}

std::size_t on_data(char* bytes, std::size_t size, std::size_t count, void* user) {
  auto& download = *static_cast<Download*>(user);
  const std::size_t length = size * count;
  if (!download.begun && !begin(download)) return 0;
  if (download.have + length > download.file.bytes) {
    download.error = fmt::format("sends more than the {} bytes expected", download.file.bytes);
    return 0;
  }
  if (std::fwrite(bytes, 1, length, download.out.get()) != length) {
    download.error = "the file cannot be written; is the disk full?";
    return 0;
  }
  download.have += length;
  download.received += length;
  if (download.options.progress) download.options.progress(download.file.name, download.have, download.file.bytes);
  return length;
}

std::string sha256_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  Sha256 hash;
  std::vector<char> block(1 << 20);
  while (in) {
    in.read(block.data(), block.size());
    hash.add(std::as_bytes(std::span(block).first(in.gcount())));
  }
  return hash.hex();
}

void set_options(Download& download, const std::string& url, std::array<char, CURL_ERROR_SIZE>& reason) {
  CURL* curl = download.curl;
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 15L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(download.options.stall_timeout.count()));  // NOLINT
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "lockstep");
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &download);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason.data());
  if (download.have > 0) curl_easy_setopt(curl, CURLOPT_RANGE, fmt::format("{}-", download.have).c_str());
}

/// Appends the missing bytes to `part`; returns why that failed, or "". Adds to `received`.
std::string request(const FetchFile& file, const std::string& url, const std::string& part, const FetchOptions& options,
                    std::uint64_t& received) {
  std::error_code absent;
  const auto size = fs::file_size(part, absent);
  const std::unique_ptr<CURL, FreeCurl> curl(curl_easy_init());
  LOCKSTEP_CHECK(curl != nullptr, "libcurl");
  Download download{file, options, curl.get(), {}, absent ? 0 : size, 0, false, ""};
  if (download.have >= file.bytes) return "";  // already complete: the digest decides
  download.out.reset(std::fopen(part.c_str(), "ab"));
  if (!download.out) {
    throw Error(code_of_errno(errno, ExitCode::cannot_create), fmt::format("{}: cannot be written", part));
  }
  std::array<char, CURL_ERROR_SIZE> reason{};
  set_options(download, url, reason);
  const CURLcode result = curl_easy_perform(curl.get());
  received += download.received;
  if (std::fflush(download.out.get()) != 0 && download.error.empty()) download.error = "the file cannot be written";
  if (!download.error.empty()) return download.error;
  if (result != CURLE_OK) return reason[0] != '\0' ? reason.data() : curl_easy_strerror(result);
  if (download.have < file.bytes) return fmt::format("sends {} bytes; expected {}", download.have, file.bytes);
  return "";
}

struct MirrorResult {
  std::string fault;  ///< empty: the file is complete
  bool wrong_contents = false;
};

MirrorResult try_mirror(const FetchFile& file, const std::string& url, const std::string& target,
                        const FetchOptions& options, std::uint64_t& received) {
  const std::string part = target + ".part";
  for (;;) {
    const bool resumed = fs::exists(part);
    const std::string fault = request(file, url, part, options, received);
    if (!fault.empty()) return {fault, false};
    const std::string digest = sha256_of(part);
    if (digest == file.sha256) {
      fs::rename(part, target);
      return {};
    }
    fs::remove(part);
    if (!resumed) return {fmt::format("SHA-256 {}; expected {}", digest, file.sha256), true};
    // The beginning may have come from elsewhere: try once more from the start.
  }
}

FetchedFile fetch_file(const FetchFile& file, const FetchSet& set, const std::string& directory,
                       const FetchOptions& options) {
  FetchedFile fetched{(fs::path(directory) / file.name).string()};
  if (fs::exists(fetched.path)) {
    fetched.was_there = sha256_of(fetched.path) == file.sha256;
    if (fetched.was_there) return fetched;
    throw Error(ExitCode::data, fmt::format("{}: is there, but is not the file of the list: SHA-256 {}; expected {}. "
                                            "Remove it, or choose another folder",
                                            fetched.path, sha256_of(fetched.path), file.sha256));
  }
  std::string faults;
  bool wrong = false;
  for (const auto& mirror : set.mirrors) {
    const std::string url = mirror + (mirror.ends_with('/') ? "" : "/") + file.name;
    const MirrorResult result = try_mirror(file, url, fetched.path, options, fetched.received);
    if (result.fault.empty()) return fetched;
    faults += fmt::format("{}{}: {}", faults.empty() ? "" : "; ", url, result.fault);
    wrong = wrong || result.wrong_contents;
  }
  throw Error(wrong ? ExitCode::data : ExitCode::infrastructure,
              fmt::format("{}: no mirror delivered it: {}. Run again to go on, or add a mirror to {}", file.name,
                          faults, options.mirrors_file));
}

}  // namespace

std::vector<FetchedFile> fetch(const std::string& name, const std::string& directory, const FetchOptions& options) {
  const FetchSet set = read_mirrors(options.mirrors_file, name);
  std::error_code failed;
  fs::create_directories(directory, failed);
  if (failed) {
    throw Error(code_of_errno(failed, ExitCode::cannot_create), fmt::format("{}: {}", directory, failed.message()));
  }
  std::vector<FetchedFile> fetched;
  for (const auto& file : set.files) fetched.push_back(fetch_file(file, set, directory, options));
  return fetched;
}

namespace {

nlohmann::json parse(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw Error(ExitCode::configuration, fmt::format("{}: the list of mirrors cannot be opened", path));
  try {
    return nlohmann::json::parse(in);
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(ExitCode::configuration, fmt::format("{}: not JSON, at byte {}", path, error.byte));
  }
}

FetchFile file_of(const nlohmann::json& entry) {
  FetchFile file{entry.at("name").get<std::string>(), entry.at("bytes").get<std::uint64_t>(),
                 entry.at("sha256").get<std::string>()};
  const bool plain = !file.name.empty() && file.name.find('/') == std::string::npos && file.name[0] != '.';
  const bool hex = file.sha256.size() == 64 && file.sha256.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!plain) throw Error(ExitCode::configuration, fmt::format("'{}' is no plain file name", file.name));
  if (!hex) {
    throw Error(ExitCode::configuration,
                fmt::format("the sha256 of {} is '{}'; expected 64 digits of 0-9 and a-f", file.name, file.sha256));
  }
  return file;
}

}  // namespace

FetchSet read_mirrors(const std::string& mirrors_file, const std::string& name) {
  const nlohmann::json list = parse(mirrors_file);
  if (!list.is_object() || !list.contains(name)) {
    std::string known;
    for (const auto& item : list.items()) known += (known.empty() ? "" : ", ") + item.key();
    throw Error(ExitCode::usage, fmt::format("'{}' is no data set of {}; it has {}", name, mirrors_file, known));
  }
  try {
    FetchSet set;
    set.mirrors = list.at(name).at("mirrors").get<std::vector<std::string>>();
    for (const auto& entry : list.at(name).at("files")) set.files.push_back(file_of(entry));
    if (set.mirrors.empty()) throw Error(ExitCode::configuration, "no mirror");
    return set;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: {}: expected mirrors and files with name, bytes and sha256 ({})", mirrors_file, name,
                            error.what()));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}: {}", mirrors_file, name, error.what()));
  }
}

}  // namespace lockstep::data
