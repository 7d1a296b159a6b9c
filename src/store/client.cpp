#include "store/client.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <pugixml.hpp>
#include <thread>
#include <utility>

#include "core/digest.hpp"
#include "lockstep/error.hpp"

namespace lockstep::store {

namespace {

constexpr std::size_t kMaxText = std::size_t{64} << 20;  // of a list or an error

/// As a signature wants a path or a value of a query: all but unreserved characters, and `keep`, as %XX.
std::string encoded(const std::string& text, const std::string& keep = "") {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string("-._~").find(c) != std::string::npos || keep.find(c) != std::string::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

struct Headers {
  curl_slist* list = nullptr;
  Headers() = default;
  Headers(const Headers&) = delete;
  Headers& operator=(const Headers&) = delete;
  ~Headers() { curl_slist_free_all(list); }
  void add(const std::string& line) { list = curl_slist_append(list, line.c_str()); }
};

bool may_pass(long status) {  // NOLINT: libcurl's type
  return status == 429 || status >= 500;
}

}  // namespace

struct Client::Handle {
  CURL* curl = curl_easy_init();
  Handle() { LOCKSTEP_CHECK(curl != nullptr, "libcurl"); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { curl_easy_cleanup(curl); }
};

struct Client::Request {
  enum class Kind { find, list, read, write, remove };
  Kind kind;
  Location at;                    ///< for messages, and the path unless a list is asked for
  std::string query = {};         ///< sorted by name, encoded
  std::uint64_t offset = 0;       ///< read
  std::span<std::byte> out = {};  ///< read
  std::span<const std::byte> body = {};
  OnBytes on_bytes = {};

  [[nodiscard]] std::string verb() const {
    return kind == Kind::write    ? "write it"
           : kind == Kind::remove ? "remove it"
           : kind == Kind::list   ? "list it"
                                  : "read it";
  }
};

struct Client::Answer {
  long status = 0;  // NOLINT: libcurl's type; 0: none came
  std::string problem = {};
  std::string text = {};  ///< of a list or an error
  std::string version = {};
  std::uint64_t size = 0;
};

namespace {

/// What a request sends and receives while it is under way.
struct Transfer {
  CURL* curl;
  std::span<std::byte> out;
  std::size_t filled = 0;
  std::span<const std::byte> body;
  std::size_t sent = 0;
  std::string text, version;
  std::string problem;
  const OnBytes& on_bytes;
  std::exception_ptr thrown = {};  ///< by on_bytes: no exception may pass through libcurl

  /// False if the request must end.
  bool note_bytes() {
    try {
      if (on_bytes) on_bytes();
    } catch (...) {
      thrown = std::current_exception();
    }
    return thrown == nullptr;
  }
};

std::size_t on_data(char* bytes, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::size_t length = size * count;
  long status = 0;  // NOLINT: libcurl's type
  curl_easy_getinfo(transfer.curl, CURLINFO_RESPONSE_CODE, &status);
  if (transfer.out.empty() || status >= 300) {
    if (transfer.text.size() + length > kMaxText) return 0;
    transfer.text.append(bytes, length);
    return length;
  }
  if (length > transfer.out.size() - transfer.filled) {
    transfer.problem = "it sends more bytes than were asked for";
    return 0;
  }
  std::memcpy(transfer.out.data() + transfer.filled, bytes, length);
  transfer.filled += length;
  return transfer.note_bytes() ? length : 0;
}

std::size_t on_header(char* bytes, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::string_view line(bytes, size * count);
  constexpr std::string_view kName = "etag:";
  const bool found = line.size() > kName.size() && std::equal(kName.begin(), kName.end(), line.begin(),
                                                              [](char a, char b) { return a == (b | 0x20); });
  if (found) {
    const auto begin = line.find_first_not_of(' ', kName.size());
    const auto end = line.find_last_not_of("\r\n ");
    if (begin != std::string_view::npos && end >= begin) transfer.version = line.substr(begin, end - begin + 1);
  }
  return size * count;
}

std::size_t on_read(char* out, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::size_t length = std::min(size * count, transfer.body.size() - transfer.sent);
  std::memcpy(out, transfer.body.data() + transfer.sent, length);
  transfer.sent += length;
  return transfer.note_bytes() ? length : CURL_READFUNC_ABORT;
}

int on_rewind(void* user, curl_off_t offset, int /*origin*/) {
  static_cast<Transfer*>(user)->sent = static_cast<std::size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

void set_common(CURL* curl, Transfer& transfer, const Access& access, const Patience& patience, Headers& headers,
                char* reason) {
  curl_easy_reset(curl);  // keeps the connection
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 15L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(patience.stall.count()));  // NOLINT
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "lockstep");
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  headers.add("x-amz-content-sha256: " + sha256(transfer.body));
  if (!access.key_id.empty()) {
    curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, ("aws:amz:" + access.region + ":s3").c_str());
    curl_easy_setopt(curl, CURLOPT_USERNAME, access.key_id.c_str());
    curl_easy_setopt(curl, CURLOPT_PASSWORD, access.secret.c_str());
    if (!access.session_token.empty()) headers.add("x-amz-security-token: " + access.session_token);
  }
}

/// "AccessDenied: Access Denied." of an error's XML; its first line if it is none.
std::string words_of(const std::string& text) {
  pugi::xml_document xml;
  if (xml.load_buffer(text.data(), text.size())) {
    const auto error = xml.child("Error");
    const std::string code = error.child_value("Code"), message = error.child_value("Message");
    if (!code.empty()) return message.empty() ? code : code + ": " + message;
  }
  return text.substr(0, std::min<std::size_t>(text.find('\n'), 200));
}

}  // namespace

Client::Client(Access access, Patience patience) : access_(std::move(access)), patience_(patience) {}

Client::~Client() = default;

std::unique_ptr<Client::Handle> Client::take_handle() const {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<Handle>();
  auto handle = std::move(idle_.back());
  idle_.pop_back();
  return handle;
}

Client::Answer Client::try_once(const Request& request) const {
  using Kind = Request::Kind;
  auto handle = take_handle();
  CURL* const curl = handle->curl;
  Transfer transfer{.curl = curl,
                    .out = request.out,
                    .body = request.body,
                    .text = {},
                    .version = {},
                    .problem = {},
                    .on_bytes = request.on_bytes};
  std::array<char, CURL_ERROR_SIZE> reason{};
  Headers headers;
  set_common(curl, transfer, access_, patience_, headers, reason.data());
  std::string url = access_.bucket_url(request.at.bucket) + "/";
  if (request.kind == Kind::list) {
    url += "?" + request.query;
  } else {
    url += encoded(request.at.key, "/");
  }
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  if (request.kind == Kind::find) curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  if (request.kind == Kind::remove) curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, "DELETE");
  if (request.kind == Kind::read) {
    headers.add(fmt::format("Range: bytes={}-{}", request.offset, request.offset + request.out.size() - 1));
  }
  if (request.kind == Kind::write) {
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_read);
    curl_easy_setopt(curl, CURLOPT_READDATA, &transfer);
    curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, on_rewind);
    curl_easy_setopt(curl, CURLOPT_SEEKDATA, &transfer);
    curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  }
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.list);
  const CURLcode result = curl_easy_perform(curl);
  if (transfer.thrown) std::rethrow_exception(transfer.thrown);
  Answer answer{.problem = std::move(transfer.problem), .text = std::move(transfer.text)};
  answer.version = std::move(transfer.version);
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
  curl_off_t length = 0;
  if (curl_easy_getinfo(curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length) == CURLE_OK && length > 0) {
    answer.size = static_cast<std::uint64_t>(length);
  }
  if (answer.problem.empty() && result != CURLE_OK) {
    answer.problem = reason[0] != '\0' ? reason.data() : curl_easy_strerror(result);
  }
  const bool read = request.kind == Kind::read && answer.status < 300;
  if (answer.problem.empty() && read && transfer.filled != request.out.size()) {
    answer.problem = fmt::format("it sent {} bytes of {}", transfer.filled, request.out.size());
  }
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(handle));
  return answer;
}

Client::Answer Client::send(const Request& request) const {
  auto pause = patience_.first_pause;
  for (int attempt = 1;; ++attempt) {
    Answer answer = try_once(request);
    if (answer.problem.empty() && !may_pass(answer.status)) return answer;
    if (attempt == patience_.attempts) refuse(request, answer);
    std::this_thread::sleep_for(pause);
    pause *= 2;
  }
}

void Client::refuse(const Request& request, const Answer& answer) const {
  const std::string place = request.at.text(), words = words_of(answer.text);
  const std::string said =
      words.empty() ? fmt::format("{}", answer.status) : fmt::format("{}, {}", answer.status, words);
  if (!answer.problem.empty() || may_pass(answer.status)) {
    throw Error(ExitCode::infrastructure,
                fmt::format("{}: the object store failed {} times to {}: {}", place, patience_.attempts, request.verb(),
                            answer.problem.empty() ? said : answer.problem));
  }
  if (answer.status == 401 || answer.status == 403) {
    throw Error(ExitCode::data,
                fmt::format("{}: expected the permission to {}, found {}; {}", place, request.verb(), said,
                            access_.key_id.empty() ? "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
                                                   : "the key is " + access_.key_id));
  }
  if (answer.status >= 300 && answer.status < 400) {
    throw Error(ExitCode::data, fmt::format("{}: the bucket is not in the region {} ({}); set AWS_REGION", place,
                                            access_.region, said));
  }
  throw Error(ExitCode::data, fmt::format("{}: the object store could not {}: {}", place, request.verb(), said));
}

std::optional<ObjectInfo> Client::find(const Location& object) const {
  const Request request{.kind = Request::Kind::find, .at = object};
  const Answer answer = send(request);
  if (answer.status == 404) return std::nullopt;
  if (answer.status != 200) refuse(request, answer);
  return ObjectInfo{object.key, answer.size, answer.version};
}

ObjectInfo Client::existing(const Location& object) const {
  auto found = find(object);
  if (!found) throw Error(ExitCode::data, fmt::format("{}: there is no such object", object.text()));
  return std::move(*found);
}

std::vector<ObjectInfo> Client::list(const Location& folder, std::size_t limit) const {
  const std::string prefix = folder.key.empty() ? "" : folder.key + "/";
  std::vector<ObjectInfo> objects;
  std::string token;
  do {
    std::string query = token.empty() ? "" : "continuation-token=" + encoded(token) + "&";
    query += "list-type=2";
    if (limit > 0) query += fmt::format("&max-keys={}", limit);
    query += "&prefix=" + encoded(prefix);
    const Request request{.kind = Request::Kind::list, .at = folder, .query = query};
    const Answer answer = send(request);
    if (answer.status != 200) refuse(request, answer);
    pugi::xml_document xml;
    const auto parsed = xml.load_buffer(answer.text.data(), answer.text.size());
    const auto result = xml.child("ListBucketResult");
    if (!parsed || !result) {
      throw Error(ExitCode::data, fmt::format("{}: expected a list of objects, found {}; is {} a server of the S3 "
                                              "protocol?",
                                              folder.text(), words_of(answer.text), access_.bucket_url(folder.bucket)));
    }
    for (const auto& item : result.children("Contents")) {
      objects.push_back({item.child_value("Key"), item.child("Size").text().as_ullong(), item.child_value("ETag")});
    }
    const bool more = std::strcmp(result.child_value("IsTruncated"), "true") == 0;
    token = more ? result.child_value("NextContinuationToken") : "";
  } while (!token.empty() && (limit == 0 || objects.size() < limit));
  std::sort(objects.begin(), objects.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  return objects;
}

std::string Client::read(const Location& object, std::uint64_t offset, std::span<std::byte> out,
                         const OnBytes& on_bytes) const {
  const Request request{.kind = Request::Kind::read, .at = object, .offset = offset, .out = out, .on_bytes = on_bytes};
  Answer answer = send(request);
  if (answer.status != 206 && !(answer.status == 200 && offset == 0)) refuse(request, answer);
  return std::move(answer.version);
}

void Client::write(const Location& object, std::span<const std::byte> bytes, const OnBytes& on_bytes) const {
  const Request request{.kind = Request::Kind::write, .at = object, .body = bytes, .on_bytes = on_bytes};
  const Answer answer = send(request);
  if (answer.status != 200) refuse(request, answer);
}

void Client::remove(const Location& object) const {
  const Request request{.kind = Request::Kind::remove, .at = object};
  const Answer answer = send(request);
  if (answer.status != 204 && answer.status != 200 && answer.status != 404) refuse(request, answer);
}

const Client& client() {
  static const Client instance;
  return instance;
}

}  // namespace lockstep::store
