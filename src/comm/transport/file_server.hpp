// Open files that one process hands to others of its host, over a Unix socket (SCM_RIGHTS). The socket's name is an
// abstract one, so nothing lies in the file system, and all is gone with the processes, however they end.
//
// Processes find each other within a network namespace. Which process, mount or user namespace they are in does not
// matter. A process of another user gets nothing, and can hand out nothing in a rank's place.
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
  /// Hands `file` to every process of this user that asks, from a thread of its own. Throws Error(infrastructure).
  explicit FileServer(FileHandle file);
  ~FileServer();
  FileServer(const FileServer&) = delete;
  FileServer& operator=(const FileServer&) = delete;
  /// What fetch_file() takes: 128 random bits.
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  void serve() const;
  FileHandle file_, listener_;
  std::string name_;
  std::thread thread_;
};

/// The file that the server of this name hands out. Throws Error(infrastructure) with the bare reason: "Connection
/// refused" where nobody of this name listens.
[[nodiscard]] FileHandle fetch_file(const std::string& name, std::chrono::milliseconds timeout);

}  // namespace lockstep::comm
