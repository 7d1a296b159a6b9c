// Copies in an object store that sends slowly: whoever waits is told of bytes as they come.
#include "run/checkpoint/copies.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <thread>

#include "checkpoint/support.hpp"

namespace lockstep::checkpoint {

namespace {

constexpr std::size_t kBytes = 400'000;

/// A store with one checkpoint of one file and a manifest; it answers one request a connection.
class Store {
 public:
  explicit Store(const std::string& run_directory) : checkpoints_(run_directory.substr(1) + "/checkpoints/1234/") {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    endpoint_ = fmt::format("http://127.0.0.1:{}", ntohs(address.sin_port));
    thread_ = std::thread([this] { serve(); });
  }
  ~Store() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }

 private:
  void serve() const {
    for (int peer = accept(listener_, nullptr, nullptr); peer >= 0; peer = accept(listener_, nullptr, nullptr)) {
      std::string request;
      char byte = 0;
      while (!request.ends_with("\r\n\r\n") && recv(peer, &byte, 1, 0) == 1) request += byte;
      const std::string answer = answer_to(request);
      for (std::size_t sent = 0; sent < answer.size();) {
        const auto some = send(peer, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
        if (some <= 0) break;
        sent += static_cast<std::size_t>(some);
      }
      close(peer);
    }
  }
  [[nodiscard]] std::string answer_to(const std::string& request) const {
    const auto with = [](int status, const std::string& body) {
      return fmt::format("HTTP/1.1 {} -\r\nETag: \"1\"\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}", status,
                         body.size(), body);
    };
    if (request.starts_with("HEAD")) return with(404, "");
    if (request.find("list-type=2") == std::string::npos) {
      return with(200, request.find("manifest.json") == std::string::npos ? std::string(kBytes, 'x') : "{}");
    }
    const auto object = [this](const std::string& name, std::size_t size) {
      return fmt::format("<Contents><Key>{}step-00000004/{}</Key><Size>{}</Size><ETag>\"1\"</ETag></Contents>",
                         checkpoints_, name, size);
    };
    return with(200, "<ListBucketResult>" + object("manifest.json", 2) + object("model.safetensors", kBytes) +
                         "</ListBucketResult>");
  }

  int listener_ = socket(AF_INET, SOCK_STREAM, 0);
  std::string checkpoints_, endpoint_;
  std::thread thread_;
};

}  // namespace

TEST(CheckpointCopies, TellOfBytesAsTheyCome) {
  const Folder folder;
  const Store store(folder.path());
  const store::Client client(store::Access{.endpoint = store.endpoint()}, {.in_all = std::chrono::milliseconds(0)});
  const CheckpointCopies copies("s3://bucket", folder.path(), "1234", client);
  int calls = 0;
  (void)copies.fetch(copies.list().at(0), [&] { ++calls; });
  EXPECT_GT(calls, 10) << "400,000 bytes do not come at once";
}

TEST(CheckpointCopies, EndWithWhatStopsThem) {
  const Folder folder;
  const Store store(folder.path());
  const store::Client client(store::Access{.endpoint = store.endpoint()}, {});
  const CheckpointCopies copies("s3://bucket", folder.path(), "1234", client);
  int calls = 0;
  EXPECT_THROW((void)copies.fetch(copies.list().at(0),
                                  [&] {
                                    if (++calls == 3) throw std::range_error("enough");
                                  }),
               std::range_error);
  EXPECT_EQ(calls, 3) << "it is not asked for again";
}

}  // namespace lockstep::checkpoint
