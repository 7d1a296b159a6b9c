#include "comm/transport/agreement.hpp"

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

#include "comm/transport/topology.hpp"
#include "core/ran_time.hpp"
#include "core/spans.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

constexpr int kAgreementTag = 73;
constexpr std::chrono::microseconds kPoll{20};

/// A verdict as it is sent.
struct Note {
  int failed = -1;  ///< the rank that failed; -1: none
  std::array<char, kMaxFailureText + 1> what{};
};

Note note_of(int rank, const std::string& what) {
  Note note;
  if (what.empty()) return note;
  note.failed = rank;
  std::copy_n(what.begin(), std::min(what.size(), kMaxFailureText), note.what.begin());
  return note;
}

class Agreement {
 public:
  Agreement(Communicator& ranks, const Operation& operation) : ranks_(ranks), operation_(operation) {
    for (int child = 2 * rank() + 1; child <= 2 * rank() + 2 && child < ranks.size(); ++child)
      below_.push_back({child});
    if (rank() > 0) above_.push_back({(rank() - 1) / 2});
    for (auto* peers : {&below_, &above_}) {
      for (Peer& peer : *peers) peer.transfer = ranks.receive(bytes_of(peer.note), peer.rank, kAgreementTag);
    }
  }

  std::optional<Failure> come_to_one(const Verdict& verdict, std::chrono::milliseconds patience) {
    RanTime waited;
    while (!decision_) {
      if (!own_) {
        if (const auto said = verdict()) own_ = note_of(rank(), *said);
      }
      hear();
      if (decision_) break;
      ranks_.check_peers();
      if (waited.look() >= operation_.timeout + patience) {
        throw_deadline(ranks_.topology(), rank(), waited_for(), operation_, waited.seconds());
      }
      std::this_thread::sleep_for(kPoll);
    }
    for (const Peer& peer : below_) tell(peer.rank, *decision_);
    // All messages must have left before an error ends this rank's communication.
    for (const auto& transfer : sending_) transfer->wait(operation_);
    if (decision_->failed < 0) return std::nullopt;
    return Failure{decision_->failed, decision_->what.data()};
  }

 private:
  struct Peer {
    int rank = 0;
    Note note;
    std::unique_ptr<Transfer> transfer;
    bool heard() const { return transfer->done(); }
  };

  static std::span<std::byte> bytes_of(Note& note) { return std::as_writable_bytes(std::span(&note, 1)); }
  int rank() const { return ranks_.rank(); }

  // The verdict of this rank and all ranks below it; null while that is open.
  const Note* verdict_here() const {
    bool all = own_.has_value();
    if (own_ && own_->failed >= 0) return &*own_;
    for (const Peer& peer : below_) {
      if (!peer.heard()) {
        all = false;
      } else if (peer.note.failed >= 0) {
        return &peer.note;
      }
    }
    return all ? &*own_ : nullptr;
  }

  void hear() {
    if (const Note* here = sent_up_ ? nullptr : verdict_here(); here != nullptr) {
      sent_up_ = true;
      if (above_.empty()) {
        decision_ = *here;
      } else {
        tell(above_[0].rank, *here);
      }
    }
    if (!above_.empty() && above_[0].heard()) decision_ = above_[0].note;
  }

  void tell(int to, const Note& note) {
    sent_.push_back(std::make_unique<Note>(note));
    sending_.push_back(ranks_.send(bytes_of(*sent_.back()), to, kAgreementTag));
  }

  int waited_for() const {
    for (const Peer& peer : below_) {
      if (!sent_up_ && !peer.heard()) return peer.rank;
    }
    return above_.empty() ? -1 : above_[0].rank;
  }

  Communicator& ranks_;
  const Operation& operation_;
  std::vector<Peer> below_, above_;  ///< in the tree: at most two below, and one above except at the root
  std::optional<Note> own_, decision_;
  bool sent_up_ = false;
  std::vector<std::unique_ptr<Note>> sent_;  ///< buffers that transfers read
  std::vector<std::unique_ptr<Transfer>> sending_;
};

}  // namespace

std::optional<Failure> agree(Communicator& ranks, const Verdict& verdict, const Operation& operation,
                             std::chrono::milliseconds patience) {
  return Agreement(ranks, operation).come_to_one(verdict, patience);
}

}  // namespace lockstep::comm
