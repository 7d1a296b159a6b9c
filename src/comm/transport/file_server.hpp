// Passes open files from one process to others on its host, over a Unix socket (SCM_RIGHTS). The socket has an abstract
// name, so nothing exists in the file system, and everything is gone with the processes, however they end.
//
// Processes must share a network namespace; their process, mount and user namespaces do not matter. Processes of
// another user can neither get a file nor hand one out in a rank's place.
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "core/handle.hpp"

namespace lockstep::comm {

struct FileTraits {
  struct Value {
    int number = -1;
    bool operator==(const Value&) const = default;
  };
  static void destroy(Value value) noexcept;
};
using FileHandle = Handle<FileTraits>;

class FileServer {
 public:
  /// Hands `file` to every process of this user that asks, on a thread of its own. Throws Error(infrastructure).
  explicit FileServer(FileHandle file);
  ~FileServer();
  FileServer(const FileServer&) = delete;
  FileServer& operator=(const FileServer&) = delete;
  /// The argument for fetch_file(): 128 random bits.
  const std::string& name() const { return name_; }

 private:
  void serve() const;
  FileHandle file_, listener_;
  std::string name_;
  std::thread thread_;
};

/// The file that the server with this name hands out. Throws Error(infrastructure) with only the reason: "Connection
/// refused" if no server listens under this name.
[[nodiscard]] FileHandle fetch_file(const std::string& name, std::chrono::milliseconds timeout);

}  // namespace lockstep::comm
