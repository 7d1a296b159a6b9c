#include "comm/transport/pulse.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace lockstep::comm {

namespace {

constexpr int kPulseTag = 12;

}  // namespace

Pulse::Pulse(Communicator& ranks, const std::vector<int>& peers, std::chrono::milliseconds timeout, Now now)
    : ranks_(ranks),
      quarter_(timeout / 4),
      timeout_(timeout),
      now_(std::move(now)),
      moved_(now_()),
      told_(moved_.load()),
      told_at_(ranks.rank()),
      heard_(moved_) {
  for (const int rank : peers) {
    peers_.push_back(std::make_unique<Peer>());
    peers_.back()->rank = peers_.back()->at = rank;
  }
}

void Pulse::moved() {
  const auto now = now_();
  moved_.store(now, std::memory_order_relaxed);
  const bool says_waiting = told_at_.load(std::memory_order_relaxed) != ranks_.rank();
  if (!says_waiting && now - told_.load(std::memory_order_relaxed) < quarter_) return;
  const std::lock_guard lock(mutex_);
  drain(now);
  tell(now, now, ranks_.rank());
}

Clock::time_point Pulse::last_progress(int peer) {
  const auto now = now_();
  const std::lock_guard lock(mutex_);
  drain(now);
  const auto moved = moved_.load(), progress = std::max(moved, heard_);
  const int at = end_of_chain(peer);
  const bool waits_long = at != told_at_ && now - moved >= quarter_;
  if (progress - told_.load() >= quarter_ || waits_long) tell(now, progress, at);
  return progress;
}

int Pulse::blamed(int peer) {
  const std::lock_guard lock(mutex_);
  return end_of_chain(peer);
}

int Pulse::end_of_chain(int peer) const {
  const auto found = std::find_if(peers_.begin(), peers_.end(), [&](const auto& p) { return p->rank == peer; });
  if (found == peers_.end()) return peer < 0 ? ranks_.rank() : peer;
  return (*found)->at == ranks_.rank() ? peer : (*found)->at;
}

void Pulse::post(Peer& peer) {
  peer.receive = ranks_.receive(std::as_writable_bytes(std::span(&peer.in, 1)), peer.rank, kPulseTag);
}

void Pulse::take(Peer& peer, Clock::time_point now) {
  const std::chrono::duration<double> silent(peer.in.silent);
  heard_ = std::max(heard_, now - std::chrono::duration_cast<Clock::duration>(silent));
  peer.at = peer.in.at;
  peer.closed = peer.in.last != 0;
  peer.receive.reset();
}

void Pulse::drain(Clock::time_point now) {
  for (const auto& peer : peers_) {
    if (!peer->receive && !peer->closed) post(*peer);
    while (peer->receive && peer->receive->done()) {
      take(*peer, now);
      if (!peer->closed) post(*peer);
    }
  }
}

void Pulse::tell(Clock::time_point now, Clock::time_point progress, int at) {
  told_ = progress;
  told_at_ = at;
  for (const auto& peer : peers_) {
    if (peer->sent && !peer->sent->done()) continue;  // it will hear the next one
    peer->out = {std::chrono::duration<double>(now - progress).count(), at, 0};
    peer->sent = ranks_.send(std::as_bytes(std::span(&peer->out, 1)), peer->rank, kPulseTag);
  }
}

void Pulse::close() {
  const Operation operation{"end of the parts", 0, timeout_};
  const std::lock_guard lock(mutex_);
  for (const auto& peer : peers_) {
    if (peer->sent) peer->sent->wait(operation);
    peer->out = {0, ranks_.rank(), 1};
    peer->sent = ranks_.send(std::as_bytes(std::span(&peer->out, 1)), peer->rank, kPulseTag);
  }
  for (const auto& peer : peers_) {
    while (!peer->closed) {
      if (!peer->receive) post(*peer);
      peer->receive->wait(operation);
      take(*peer, now_());
    }
    peer->sent->wait(operation);
  }
}

}  // namespace lockstep::comm
