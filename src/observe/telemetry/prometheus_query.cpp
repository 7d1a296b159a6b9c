#include "observe/telemetry/prometheus_query.hpp"

#include <curl/curl.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/numbers.hpp"

namespace lockstep::telemetry {

namespace {

struct FreeCurl {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};
struct FreeText {
  void operator()(char* text) const { curl_free(text); }
};

std::size_t on_data(const char* bytes, std::size_t size, std::size_t count, void* user) {
  constexpr std::size_t kMaxAnswer = 16 << 20;  // an expected answer has some kilobytes
  auto& text = *static_cast<std::string*>(user);
  if (text.size() + size * count > kMaxAnswer) return 0;
  text.append(bytes, size * count);
  return size * count;
}

}  // namespace

PrometheusAnswer parse_answer(const std::string& text) {
  PrometheusAnswer answer;
  try {
    const auto json = nlohmann::json::parse(text);
    if (json.at("status") != "success") return {{}, json.value("error", "an error without a message")};
    for (const auto& result : json.at("data").at("result")) {
      const std::string value = result.at("value").at(1);
      answer.samples.push_back({result.at("metric"), number_from<double>(value).value_or(0)});
    }
  } catch (const nlohmann::json::exception&) {
    return {{}, "it is not a response of Prometheus"};
  }
  return answer;
}

PrometheusAnswer query_prometheus(const std::string& url, const std::string& expression,
                                  std::chrono::milliseconds timeout) {
  const std::unique_ptr<CURL, FreeCurl> curl(curl_easy_init());
  if (!curl) return {{}, "libcurl cannot be used"};
  const std::unique_ptr<char, FreeText> query(
      curl_easy_escape(curl.get(), expression.c_str(), static_cast<int>(expression.size())));
  const std::string base = url.substr(0, url.find_last_not_of('/') + 1);
  const std::string whole = base + "/api/v1/query?query=" + query.get();
  std::array<char, CURL_ERROR_SIZE> reason{};
  std::string text;
  curl_easy_setopt(curl.get(), CURLOPT_URL, whole.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(timeout.count()));  // NOLINT: libcurl's type
  curl_easy_setopt(curl.get(), CURLOPT_USERAGENT, "lockstep");
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &text);
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, reason.data());
  const CURLcode result = curl_easy_perform(curl.get());
  if (result != CURLE_OK) return {{}, reason[0] != '\0' ? reason.data() : curl_easy_strerror(result)};
  return parse_answer(text);
}

}  // namespace lockstep::telemetry
