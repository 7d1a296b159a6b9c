#include "data/store/client.hpp"

#include <curl/curl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <pugixml.hpp>
#include <random>
#include <thread>
#include <utility>

#include "core/digest.hpp"
#include "core/numbers.hpp"
#include "core/spans.hpp"
#include "core/stop_count.hpp"
#include "data/store/http.hpp"
#include "data/store/in_parallel.hpp"
#include "data/store/profile.hpp"
#include "lockstep/error.hpp"

namespace lockstep::store {

namespace {

constexpr std::size_t kMaxText = std::size_t{64} << 20;  // of a list or an error
constexpr std::uint64_t kMostParts = 9'000;              // of an object; the protocol has 10,000
constexpr std::int64_t kSkew = 60;                       // seconds between two clocks that are worth mending
constexpr std::chrono::milliseconds kTick{200};          // between two looks whether waiting should end
constexpr int kMostMends = 3;                            // of a request, by another key or date
// A process that has been asked to stop repeats a reading request no longer: it may be killed before an answer comes.
constexpr std::chrono::seconds kPatienceOfAnEnd{5};

struct Headers {
  curl_slist* list = nullptr;
  Headers() = default;
  Headers(const Headers&) = delete;
  Headers& operator=(const Headers&) = delete;
  ~Headers() { curl_slist_free_all(list); }
  void add(const std::string& line) { list = curl_slist_append(list, line.c_str()); }
};

/// A quarter less or more, so that a thousand ranks do not come back at once.
std::chrono::milliseconds with_jitter(std::chrono::milliseconds pause) {
  static thread_local std::minstd_rand random(std::random_device{}());
  return pause * std::uniform_int_distribution<int>(75, 125)(random) / 100;
}

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
  enum class Kind { find, list, read, write, remove, begin_parts, end_parts, give_up_parts };
  Kind kind;
  ObjectLocation at;              ///< for messages, and the path unless a list is asked for
  std::string query = {};         ///< sorted by name, encoded
  std::uint64_t offset = 0;       ///< read
  std::span<std::byte> out = {};  ///< read
  std::span<const std::byte> body = {};
  std::string digest = sha256(std::string_view());  ///< of the body
  std::string whole_digest = {};                    ///< of the object that is written, to be kept with it
  OnBytes on_bytes = {};

  bool only_reads() const { return kind == Kind::find || kind == Kind::list || kind == Kind::read; }
  std::string verb() const {
    return kind == Kind::find || kind == Kind::read ? "read it"
           : kind == Kind::remove                   ? "remove it"
           : kind == Kind::list                     ? "list it"
                                                    : "write it";
  }
};

struct Client::Answer {
  long status = 0;  // NOLINT: libcurl's type; 0: none came
  std::string problem = {};
  std::string text = {};  ///< of a list or an error
  std::string version = {}, sha256 = {};
  std::uint64_t size = 0;
  Key key = {};                                  ///< that the request was signed with
  std::chrono::system_clock::time_point date{};  ///< the server's; none: the epoch
  int attempts = 1;
  double seconds = 0;  ///< that all attempts took
};

namespace {

/// What a request sends and receives while it is under way.
struct Transfer {
  CURL* curl;
  std::span<std::byte> out;
  std::size_t filled = 0;
  std::span<const std::byte> body;
  std::size_t sent = 0;
  std::string text, version, sha256, date;
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

/// The value of a header line with this name, in small letters with a colon; "": it is another one.
std::string value_of(std::string_view line, std::string_view name) {
  const bool found = line.size() > name.size() &&
                     std::equal(name.begin(), name.end(), line.begin(), [](char a, char b) { return a == (b | 0x20); });
  if (!found) return "";
  const auto begin = line.find_first_not_of(' ', name.size()), end = line.find_last_not_of("\r\n ");
  return std::string(begin != std::string_view::npos && end >= begin ? line.substr(begin, end - begin + 1) : "");
}

std::size_t on_header(char* bytes, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::string_view line(bytes, size * count);
  for (const auto& [name, value] : {std::pair("etag:", &transfer.version), std::pair("date:", &transfer.date),
                                    std::pair("x-amz-meta-sha256:", &transfer.sha256)}) {
    if (auto found = value_of(line, name); !found.empty()) *value = std::move(found);
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
  static_cast<Transfer*>(user)->sent = offset;
  return CURL_SEEKFUNC_OK;
}

void set_common(CURL* curl, Transfer& transfer, const Patience& patience, char* reason) {
  curl_easy_reset(curl);  // keeps the connection
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 15L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(patience.stall.count()));  // NOLINT
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "lockstep");
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
}

void sign(CURL* curl, Headers& headers, const std::string& region, const Key& key, std::int64_t clock_offset) {
  if (key.id.empty()) return;
  curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, ("aws:amz:" + region + ":s3").c_str());
  curl_easy_setopt(curl, CURLOPT_USERNAME, key.id.c_str());
  curl_easy_setopt(curl, CURLOPT_PASSWORD, key.secret.c_str());
  if (!key.session_token.empty()) headers.add("x-amz-security-token: " + key.session_token);
  if (clock_offset == 0) return;
  const std::time_t now = std::time(nullptr) + clock_offset;
  headers.add(fmt::format("X-Amz-Date: {:%Y%m%dT%H%M%SZ}", fmt::gmtime(now)));
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

Patience patience_from_environment() {
  Patience patience;
  const std::string text = variable({"LOCKSTEP_STORE_PATIENCE"});
  const auto seconds = number_from<double>(text);
  if (seconds && *seconds >= 0) patience.in_all = std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1e3));
  if (text.empty() || (seconds && *seconds >= 0)) return patience;
  throw Error(ExitCode::configuration,
              fmt::format("LOCKSTEP_STORE_PATIENCE: expected seconds, as in 300, found '{}'", text));
}

Client::Client(Access access, Patience patience, std::uint64_t part_bytes)
    : access_(std::move(access)), patience_(patience), part_bytes_(part_bytes), credentials_(access_.find_key) {}

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
  Answer answer;
  try {
    answer.key = credentials_.key();
  } catch (const Error& error) {
    if (error.code() != ExitCode::infrastructure) throw;
    answer.problem = error.what();
    return answer;
  }
  auto handle = take_handle();
  CURL* const curl = handle->curl;
  Transfer transfer{.curl = curl,
                    .out = request.out,
                    .body = request.body,
                    .text = {},
                    .version = {},
                    .sha256 = {},
                    .date = {},
                    .problem = {},
                    .on_bytes = request.on_bytes};
  std::array<char, CURL_ERROR_SIZE> reason{};
  Headers headers;
  set_common(curl, transfer, patience_, reason.data());
  headers.add("x-amz-content-sha256: " + request.digest);
  if (!request.whole_digest.empty()) headers.add("x-amz-meta-sha256: " + request.whole_digest);
  sign(curl, headers, access_.region, answer.key, clock_offset_);
  std::string url = access_.bucket_url(request.at.bucket) + "/";
  if (request.kind != Kind::list) url += percent_encoded(request.at.key, "/");
  if (!request.query.empty()) url += "?" + request.query;
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  if (request.kind == Kind::find) curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  if (request.kind == Kind::begin_parts || request.kind == Kind::end_parts) {
    curl_easy_setopt(curl, CURLOPT_POST, 1L);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS,
                     request.body.empty() ? "" : reinterpret_cast<const char*>(request.body.data()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  }
  const bool removes = request.kind == Kind::remove || request.kind == Kind::give_up_parts;
  if (removes) curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, "DELETE");
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
  answer.problem = std::move(transfer.problem);
  answer.text = std::move(transfer.text);
  answer.version = std::move(transfer.version);
  answer.sha256 = std::move(transfer.sha256);
  if (const std::time_t date = curl_getdate(transfer.date.c_str(), nullptr); date > 0) {
    answer.date = std::chrono::system_clock::from_time_t(date);
  }
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
  curl_off_t length = 0;
  if (curl_easy_getinfo(curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length) == CURLE_OK && length > 0) {
    answer.size = length;
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

/// Whether the same request may succeed at once, with another key or date.
bool Client::can_be_mended(const Answer& answer) const {
  if (answer.key.id.empty() || (answer.status != 400 && answer.status != 401 && answer.status != 403)) return false;
  using std::chrono::system_clock;
  if (answer.date != system_clock::time_point()) {
    const auto ahead = std::chrono::duration_cast<std::chrono::seconds>(answer.date - system_clock::now()).count();
    if (std::abs(ahead - clock_offset_) > kSkew) {
      clock_offset_ = ahead;
      return true;
    }
  }
  return credentials_.renew(answer.key);
}

Client::Answer Client::send(const Request& request) const {
  const auto start = Clock::now();
  auto pause = patience_.first_pause;
  int mended = 0;
  for (int attempt = 1;; ++attempt) {
    Answer answer = try_once(request);
    if (answer.status != 0 && request.on_bytes) request.on_bytes();
    answer.attempts = attempt;
    answer.seconds = seconds_since(start);
    const bool failed = !answer.problem.empty() || may_pass(answer.status);
    if (!failed && (mended == kMostMends || !can_be_mended(answer))) return answer;
    if (!failed) {
      ++mended;
      continue;
    }
    if (Clock::now() + pause > start + patience_.in_all) refuse(request, answer);
    for (const auto end = Clock::now() + with_jitter(pause); Clock::now() < end;) {
      if (request.on_bytes) request.on_bytes();
      const bool ends = asked_to_stop && request.only_reads();
      if (ends && Clock::now() > start + kPatienceOfAnEnd) refuse(request, answer);
      std::this_thread::sleep_for(std::min<Clock::duration>(end - Clock::now(), kTick));
    }
    pause = std::min(2 * pause, patience_.longest_pause);
  }
}

void Client::refuse(const Request& request, const Answer& answer) const {
  const std::string place = request.at.text(), words = words_of(answer.text);
  const std::string said =
      words.empty() ? fmt::format("{}", answer.status) : fmt::format("{}, {}", answer.status, words);
  if (!answer.problem.empty() || may_pass(answer.status)) {
    throw Error(
        ExitCode::infrastructure,
        fmt::format(
            "{}: the object store has failed {} to {}: {}", place,
            answer.attempts == 1 ? "once" : fmt::format("{} times, for {:.0f} s,", answer.attempts, answer.seconds),
            request.verb(), answer.problem.empty() ? said : answer.problem));
  }
  if (words.starts_with("ExpiredToken") || words.starts_with("TokenRefreshRequired")) {
    throw Error(ExitCode::infrastructure, fmt::format("{}: the key {} has expired ({}); renew it where it comes from",
                                                      place, answer.key.id, said));
  }
  if (answer.status == 401 || answer.status == 403) {
    throw Error(ExitCode::data,
                fmt::format("{}: expected the permission to {}, found {}; {}", place, request.verb(), said,
                            answer.key.id.empty() ? "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
                                                  : "the key is " + answer.key.id));
  }
  if (answer.status >= 300 && answer.status < 400) {
    throw Error(ExitCode::data, fmt::format("{}: the bucket is not in the region {} ({}); set AWS_REGION", place,
                                            access_.region, said));
  }
  throw Error(ExitCode::data, fmt::format("{}: the object store could not {}: {}", place, request.verb(), said));
}

std::optional<ObjectInfo> Client::find(const ObjectLocation& object, const OnBytes& on_bytes) const {
  const Answer answer = send({.kind = Request::Kind::find, .at = object, .on_bytes = on_bytes});
  if (answer.status == 404) return std::nullopt;
  if (answer.status != 200) {  // an answer of this kind has no words; the same as a question for a byte has
    std::byte first{};
    const Request request{.kind = Request::Kind::read, .at = object, .out = std::span(&first, 1), .on_bytes = on_bytes};
    refuse(request, send(request));
  }
  return ObjectInfo{object.key, answer.size, answer.version, answer.sha256};
}

ObjectInfo Client::existing(const ObjectLocation& object) const {
  auto found = find(object);
  if (!found) throw Error(ExitCode::data, fmt::format("{}: there is no such object", object.text()));
  return std::move(*found);
}

std::vector<ObjectInfo> Client::list(const ObjectLocation& folder, std::size_t limit, const OnBytes& on_bytes) const {
  const std::string prefix = folder.key.empty() ? "" : folder.key + "/";
  std::vector<ObjectInfo> objects;
  std::string token;
  do {
    std::string query = token.empty() ? "" : "continuation-token=" + percent_encoded(token) + "&";
    query += "list-type=2";
    if (limit > 0) query += fmt::format("&max-keys={}", limit);
    query += "&prefix=" + percent_encoded(prefix);
    const Request request{.kind = Request::Kind::list, .at = folder, .query = query, .on_bytes = on_bytes};
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

std::string Client::read(const ObjectLocation& object, std::uint64_t offset, std::span<std::byte> out,
                         const OnBytes& on_bytes) const {
  const Request request{.kind = Request::Kind::read, .at = object, .offset = offset, .out = out, .on_bytes = on_bytes};
  Answer answer = send(request);
  if (answer.status != 206 && !(answer.status == 200 && offset == 0)) refuse(request, answer);
  return std::move(answer.version);
}

bool Client::read_whole(const ObjectLocation& object, const std::string& version, std::span<std::byte> out,
                        const OnBytes& on_bytes) const {
  if (out.empty()) return true;
  std::atomic<bool> same{true};
  const auto get = [&](std::size_t i, const OnBytes& on_part) {
    const std::uint64_t begin = i * part_bytes_;
    const auto part = out.subspan(begin, std::min<std::uint64_t>(part_bytes_, out.size() - begin));
    if (read(object, begin, part, on_part) != version) same = false;
  };
  in_parallel((out.size() - 1) / part_bytes_ + 1, on_bytes, get);
  return same;
}

void Client::write(const ObjectLocation& object, std::span<const std::byte> bytes, const OnBytes& on_bytes) const {
  const std::string digest = sha256(bytes);
  if (bytes.size() >= 2 * part_bytes_) return write_in_parts(object, bytes, digest, on_bytes);
  const Request request{.kind = Request::Kind::write,
                        .at = object,
                        .body = bytes,
                        .digest = digest,
                        .whole_digest = digest,
                        .on_bytes = on_bytes};
  const Answer answer = send(request);
  if (answer.status != 200) refuse(request, answer);
}

// "Multipart upload": the object is there once all parts are put together.
void Client::write_in_parts(const ObjectLocation& object, std::span<const std::byte> bytes, const std::string& digest,
                            const OnBytes& on_bytes) const {
  using Kind = Request::Kind;
  const auto answer_to = [this](const Request& request) {
    Answer answer = send(request);
    if (answer.status != 200) refuse(request, answer);
    return answer;
  };
  const Answer begun =
      answer_to({.kind = Kind::begin_parts, .at = object, .query = "uploads=", .whole_digest = digest});
  pugi::xml_document xml;
  xml.load_buffer(begun.text.data(), begun.text.size());
  const std::string id = percent_encoded(xml.child("InitiateMultipartUploadResult").child_value("UploadId"));
  if (id.empty()) {
    throw Error(ExitCode::data, fmt::format("{}: expected the id of an upload, found {}", object.text(), begun.text));
  }
  const std::uint64_t size = std::max<std::uint64_t>(part_bytes_, bytes.size() / kMostParts + 1);
  std::vector<std::string> versions((bytes.size() - 1) / size + 1);
  try {
    in_parallel(versions.size(), on_bytes, [&](std::size_t i, const OnBytes& on_part) {
      const auto part = bytes.subspan(i * size, std::min<std::uint64_t>(size, bytes.size() - i * size));
      versions[i] = answer_to({.kind = Kind::write,
                               .at = object,
                               .query = fmt::format("partNumber={}&uploadId={}", i + 1, id),
                               .body = part,
                               .digest = sha256(part),
                               .on_bytes = on_part})
                        .version;
    });
    std::string list = "<CompleteMultipartUpload>";
    for (std::size_t i = 0; i < versions.size(); ++i) {
      list += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1, versions[i]);
    }
    list += "</CompleteMultipartUpload>";
    const Request end{.kind = Kind::end_parts,
                      .at = object,
                      .query = "uploadId=" + id,
                      .body = std::as_bytes(std::span(list)),
                      .digest = sha256(list)};
    const Answer ended = answer_to(end);
    if (ended.text.find("<Error>") != std::string::npos) refuse(end, ended);  // a status of 200 promises nothing here
  } catch (...) {
    try {
      (void)send({.kind = Kind::give_up_parts, .at = object, .query = "uploadId=" + id});
    } catch (const std::exception&) {  // the bucket's own rules remove it
    }
    throw;
  }
}

void Client::remove(const ObjectLocation& object, const OnBytes& on_bytes) const {
  const Request request{.kind = Request::Kind::remove, .at = object, .on_bytes = on_bytes};
  const Answer answer = send(request);
  if (answer.status != 204 && answer.status != 200 && answer.status != 404) refuse(request, answer);
}

const Client& client() {
  static const Client instance;
  return instance;
}

}  // namespace lockstep::store
