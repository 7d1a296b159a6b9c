// NCCL for ranks that are threads of one process: returns what a script says, moves the bytes as NCCL would, records
// every call, and detects what NCCL forbids. The one created last acts as the library.
//
// What a group sends is taken before the group ends, as if NCCL had no buffer for it: groups whose order differs
// between ranks deadlock, which is detected as an error, too.
#pragma once

#include <nccl.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

struct ncclComm {
  int rank = 0, ranks = 0;
  bool under_way = false;  ///< a call is in progress, and the caller has not been told that it is over
  bool finalized = false;
};

namespace lockstep::comm {

class ScriptedNccl {
 public:
  ScriptedNccl();
  ScriptedNccl(const ScriptedNccl&) = delete;
  ScriptedNccl& operator=(const ScriptedNccl&) = delete;
  ~ScriptedNccl();

  /// What a function returns on this rank, call by call; the last value is repeated. Without a script: ncclSuccess.
  /// "state" stands for the result of ncclCommGetAsyncError.
  void script(int rank, const std::string& function, std::vector<ncclResult_t> results);

  /// All calls of a rank except queries: "ncclSend 40 to 1".
  [[nodiscard]] std::vector<std::string> calls(int rank) const;
  [[nodiscard]] int count(int rank, const std::string& function) const;
  /// The collective calls.
  [[nodiscard]] std::vector<std::string> collectives(int rank) const;
  [[nodiscard]] std::vector<std::string> mistakes() const;
  /// Communicators that were neither destroyed nor aborted.
  [[nodiscard]] std::size_t alive() const;

  // The instance on which the functions act.
  static ScriptedNccl& current();
  ncclResult_t make_id();
  ncclResult_t make(ncclComm_t* communicator, int ranks, int rank, bool blocking);
  ncclResult_t ask(ncclComm_t communicator, ncclResult_t* state);
  ncclResult_t finalize(ncclComm_t communicator);
  ncclResult_t end(ncclComm_t communicator, const std::string& function);
  void start_group();
  ncclResult_t end_group();

  /// One rank's part of a call.
  struct Part {
    ncclComm_t communicator = nullptr;
    std::string what;  ///< equal at both ends of a transfer
    struct Send {
      int to = 0;
      std::vector<float> values;
    };
    struct Receive {
      int from = 0;
      std::span<float> values;
      bool add = false;
    };
    std::vector<Send> sends;
    std::vector<Receive> receives;
  };
  /// `call`: as recorded.
  ncclResult_t put(const std::string& function, const std::string& call, Part part);
  void mistake(const std::string& what);

 private:
  struct Mail {
    std::string what;
    std::vector<float> values;
    bool taken = false;
  };
  using Way = std::pair<int, int>;  ///< from, to

  [[nodiscard]] ncclResult_t next(int rank, const std::string& function);
  bool is_alive(ncclComm_t communicator, const std::string& function);
  void note(int rank, const std::string& call);
  void move(const std::vector<Part>& parts, std::unique_lock<std::mutex>& lock);

  ScriptedNccl* before_;
  mutable std::mutex mutex_;  ///< protects what follows
  std::condition_variable changed_;
  std::map<std::pair<int, std::string>, std::deque<ncclResult_t>> script_;
  std::map<int, std::vector<std::string>> calls_;
  std::map<Way, std::deque<std::shared_ptr<Mail>>> mail_;
  std::set<ncclComm_t> alive_;
  std::vector<std::unique_ptr<ncclComm>> made_;  ///< kept, so that addresses are not reused
  std::vector<std::string> mistakes_;
};

}  // namespace lockstep::comm
