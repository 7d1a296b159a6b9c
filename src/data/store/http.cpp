#include "data/store/http.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <array>
#include <memory>

namespace lockstep::store {

namespace {

struct FreeCurl {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

std::size_t on_answer(const char* bytes, std::size_t size, std::size_t count, void* user) {
  constexpr std::size_t kMaxAnswer = 1 << 20;  // an expected answer has some kilobytes
  auto& text = *static_cast<std::string*>(user);
  if (text.size() + size * count > kMaxAnswer) return 0;
  text.append(bytes, size * count);
  return size * count;
}

}  // namespace

std::string percent_encoded(const std::string& text, const std::string& keep) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string("-._~").find(c) != std::string::npos || keep.find(c) != std::string::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

HttpAnswer send(const HttpRequest& request) {
  HttpAnswer answer;
  const std::unique_ptr<CURL, FreeCurl> curl(curl_easy_init());
  std::unique_ptr<curl_slist, FreeList> headers;
  for (const auto& line : request.headers) headers.reset(curl_slist_append(headers.release(), line.c_str()));
  std::array<char, CURL_ERROR_SIZE> reason{};
  curl_easy_setopt(curl.get(), CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(request.patience.count()));  // NOLINT
  curl_easy_setopt(curl.get(), CURLOPT_USERAGENT, "lockstep");
  curl_easy_setopt(curl.get(), CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (request.direct) curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "*");
  if (!request.ca_file.empty()) curl_easy_setopt(curl.get(), CURLOPT_CAINFO, request.ca_file.c_str());
  if (!request.body.empty()) curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, request.body.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, on_answer);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer.text);
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, reason.data());
  const CURLcode result = curl_easy_perform(curl.get());
  if (result != CURLE_OK) answer.problem = reason[0] != '\0' ? reason.data() : curl_easy_strerror(result);
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &answer.status);
  return answer;
}

}  // namespace lockstep::store
