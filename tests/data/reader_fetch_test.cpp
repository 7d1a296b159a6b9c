// Uses an HTTP server of our own on 127.0.0.1: /good/ supports ranges, /norange/ ignores them, /cut/ breaks off in the
// middle, /bad/ sends wrong bytes, /long/ too many bytes; anything else is not found.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "core/digest.hpp"
#include "data/fetch.hpp"
#include "data/reader_support.hpp"

namespace lockstep::test {
namespace {

constexpr const char* kServer = R"py(
import http.server, re, sys
body = bytes((i * 7 + i // 256) % 256 for i in range(300000))
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def log_message(self, *args): pass
    def do_GET(self):
        way = self.path.split('/')[1]
        wanted = re.match(r'bytes=(\d+)-', self.headers.get('Range', ''))
        start = int(wanted.group(1)) if wanted and way in ('good', 'cut') else 0
        if way not in ('good', 'norange', 'cut', 'bad', 'long'):
            self.send_error(404)
            return
        data = {'bad': body[::-1], 'long': body + b'x'}.get(way, body)[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header('Content-Range', 'bytes %d-%d/%d' % (start, len(body) - 1, len(body)))
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data[:len(data) // 2] if way == 'cut' else data)
        if way == 'cut':
            self.wfile.flush()
            self.close_connection = True
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
)py";

std::string body() {
  std::string out;
  for (int i = 0; i < 300'000; ++i) out += static_cast<char>((i * 7 + i / 256) % 256);
  return out;
}

class Fetch : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    server = fork();
    if (server == 0) {
      dup2(pipe[1], 1);
      execlp("python3", "python3", "-c", kServer, nullptr);
      _exit(127);
    }
    close(pipe[1]);
    std::array<char, 16> line{};
    ASSERT_GT(read(pipe[0], line.data(), line.size() - 1), 0) << "python3 did not start";
    close(pipe[0]);
    port = std::atoi(line.data());
  }
  static void TearDownTestSuite() {
    kill(server, SIGKILL);
    waitpid(server, nullptr, 0);
  }

  [[nodiscard]] static std::string url(const std::string& way) {
    return "http://127.0.0.1:" + std::to_string(port) + "/" + way + "/";
  }

  /// Writes a list with these mirrors and fetches.
  std::vector<data::FetchedFile> fetch(const std::vector<std::string>& mirrors,
                                       const std::string& sum = sha256(body())) {
    std::string urls;
    for (const auto& mirror : mirrors) urls += (urls.empty() ? "\"" : ", \"") + mirror + "\"";
    write_file(folder_ / "mirrors.json", R"({"toy": {"mirrors": [)" + urls +
                                             R"(], "files": [{"name": "toy.bin", "bytes": 300000, "sha256": ")" + sum +
                                             "\"}]}}");
    data::FetchOptions options;
    options.mirrors_file = folder_ / "mirrors.json";
    return data::fetch("toy", folder_ / "out", options);
  }

  std::string error_of(ExitCode code, const std::vector<std::string>& mirrors) {
    return without(message_of(code, [&] { (void)fetch(mirrors); }), folder_.path());
  }

  static pid_t server;
  static int port;
  TemporaryFolder folder_;
};
pid_t Fetch::server = 0;
int Fetch::port = 0;

TEST_F(Fetch, DownloadsOnceAndKnowsWhatIsThere) {
  const auto first = fetch({url("good")});
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].path, folder_ / "out/toy.bin");
  EXPECT_EQ(first[0].received, 300'000U);
  EXPECT_EQ(read_file(folder_ / "out/toy.bin"), body());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out/toy.bin.part"));
  const auto again = fetch({"http://127.0.0.1:1/"});
  EXPECT_TRUE(again[0].was_there);
}

TEST_F(Fetch, ResumesAPartialDownload) {
  write_file(folder_ / "out/toy.bin.part", body().substr(0, 200'000));
  EXPECT_EQ(fetch({url("good")})[0].received, 100'000U);
  EXPECT_EQ(read_file(folder_ / "out/toy.bin"), body());
}

TEST_F(Fetch, StartsAgainWhereTheServerKnowsNoRanges) {
  write_file(folder_ / "out/toy.bin.part", body().substr(0, 200'000));
  EXPECT_EQ(fetch({url("norange")})[0].received, 300'000U);
  EXPECT_EQ(read_file(folder_ / "out/toy.bin"), body());
}

TEST_F(Fetch, ABrokenDownloadGoesOnAtTheNextMirror) {
  EXPECT_EQ(fetch({url("nowhere"), url("cut"), url("good")})[0].received, 300'000U);  // half from each
  EXPECT_EQ(read_file(folder_ / "out/toy.bin"), body());
}

TEST_F(Fetch, AWrongBeginningIsThrownAway) {
  write_file(folder_ / "out/toy.bin.part", std::string(1000, 'x'));
  (void)fetch({url("good")});
  EXPECT_EQ(read_file(folder_ / "out/toy.bin"), body());
  std::filesystem::remove(folder_ / "out/toy.bin");
  write_file(folder_ / "out/toy.bin.part", std::string(400'000, 'x'));
  (void)fetch({url("good")});
  EXPECT_EQ(read_file(folder_ / "out/toy.bin"), body());
}

TEST_F(Fetch, WrongContentsAreRefusedAndRemoved) {
  std::string reversed = body();
  std::reverse(reversed.begin(), reversed.end());
  EXPECT_EQ(error_of(ExitCode::data, {url("bad")}),
            "toy.bin: no mirror delivered it: " + url("bad") + "toy.bin: SHA-256 " + sha256(reversed) + "; expected " +
                sha256(body()) + ". Run again to go on, or add a mirror to mirrors.json");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out/toy.bin"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out/toy.bin.part"));
}

TEST_F(Fetch, ErrorsNameTheMirrors) {
  EXPECT_EQ(error_of(ExitCode::infrastructure, {url("nowhere"), url("long")}),
            "toy.bin: no mirror delivered it: " + url("nowhere") + "toy.bin: The requested URL returned error: 404; " +
                url("long") +
                "toy.bin: sends more than the 300000 bytes expected. Run again to go on, or add a mirror to "
                "mirrors.json");
  EXPECT_NE(error_of(ExitCode::infrastructure, {"http://127.0.0.1:1/"}).find("Failed to connect"), std::string::npos);
  EXPECT_NE(error_of(ExitCode::infrastructure, {"file:///etc/"}).find("Protocol \"file\""), std::string::npos);
}

TEST_F(Fetch, AnotherFileOfThatNameIsLeftAlone) {
  write_file(folder_ / "out/toy.bin", "mine");
  EXPECT_EQ(error_of(ExitCode::data, {url("good")}),
            "out/toy.bin: is there, but is not the file of the list: SHA-256 " + sha256("mine") + "; expected " +
                sha256(body()) + ". Remove it, or choose another folder");
  EXPECT_EQ(read_file(folder_ / "out/toy.bin"), "mine");
}

TEST_F(Fetch, TheListIsChecked) {
  const auto error = [&](const std::string& list, ExitCode code) {
    write_file(folder_ / "list.json", list);
    return without(message_of(code, [&] { (void)data::read_mirrors(folder_ / "list.json", "toy"); }), folder_.path());
  };
  EXPECT_EQ(error("{", ExitCode::configuration), "list.json: not JSON, at byte 2");
  EXPECT_EQ(error(R"({"mnist": {}, "cifar10": {}})", ExitCode::usage),
            "'toy' is no data set of list.json; it has cifar10, mnist");
  EXPECT_EQ(error(R"({"toy": {"mirrors": ["u"], "files": [{"name": "a/b", "bytes": 1, "sha256": "0"}]}})",
                  ExitCode::configuration),
            "list.json: toy: 'a/b' is no plain file name");
  EXPECT_EQ(error(R"({"toy": {"mirrors": ["u"], "files": [{"name": "a", "bytes": 1, "sha256": "0"}]}})",
                  ExitCode::configuration),
            "list.json: toy: the sha256 of a is '0'; expected 64 digits of 0-9 and a-f");
  EXPECT_EQ(error(R"({"toy": {"mirrors": [], "files": []}})", ExitCode::configuration), "list.json: toy: no mirror");
}

}  // namespace
}  // namespace lockstep::test
