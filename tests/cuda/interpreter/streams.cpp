#include "cuda/interpreter/streams.hpp"

#include <chrono>
#include <thread>
#include <utility>

namespace lockstep::ptx {

namespace {

constexpr std::chrono::microseconds kBetweenTries{50};

}  // namespace

Stream* Streams::make() {
  auto stream = std::make_unique<Stream>(order_.add_stream());
  Stream* const made = stream.get();
  streams_.emplace(made, std::move(stream));
  in_order_.push_back(made);
  return made;
}

void Streams::destroy(Stream* stream) {
  finish(*stream);
  std::erase(in_order_, stream);
  streams_.erase(stream);
}

void Streams::put_made(Stream& stream, Put put) {
  if (stream.recording_) {
    stream.recording_->graph.puts.push_back(std::move(put));
    return;
  }
  stream.items_.push_back({put(), order_.enqueue(stream.number_, stream.clock_, host_), nullptr, nullptr});
}

void Streams::launch(Stream& stream, const Graph& graph) {
  for (const Put& put : graph.puts) put_made(stream, put);
}

void Streams::put_tried(Stream& stream, Try tried) {
  Work work = order_.enqueue(stream.number_, stream.clock_, host_);
  stream.items_.push_back({{}, std::move(work), nullptr, nullptr, std::move(tried)});
}

void Streams::record(Stream& stream, Event& event) {
  event.last = std::make_shared<Mark>();
  join(stream.clock_, host_);
  event.last->clock = stream.clock_;
  stream.items_.push_back({{}, {}, nullptr, event.last});
}

void Streams::wait(Stream& stream, const Event& event) {
  if (event.last == nullptr) return;  // as in CUDA: an event that was never recorded is done
  join(stream.clock_, event.last->clock);
  stream.items_.push_back({{}, {}, event.last, nullptr});
}

bool Streams::would_order(const Stream* stream, const Event& event) const {
  if (event.last == nullptr) return false;
  Clock known = host_;
  if (stream != nullptr) join(known, stream->clock_);
  return !knows(known, event.last->clock);
}

std::unique_ptr<Graph> Streams::end(Stream& stream) {
  Recording recording = std::move(*stream.recording_);
  stream.recording_.reset();
  return recording.broken ? nullptr : std::make_unique<Graph>(std::move(recording.graph));
}

Streams::Went Streams::step() {
  std::vector<Stream*> ready;
  for (Stream* const stream : in_order_) {
    if (stream->items_.empty()) continue;
    const auto& waits = stream->items_.front().waits;
    if (waits == nullptr || waits->done) ready.push_back(stream);
  }
  const bool any = !ready.empty();
  while (!ready.empty()) {
    const auto drawn = ready.begin() + draw_.below(static_cast<u32>(ready.size()));
    Stream& stream = **drawn;
    const Stream::Item& next = stream.items_.front();
    if (next.tried && !next.tried(next.work)) {
      ready.erase(drawn);
      continue;
    }
    const Stream::Item item = std::move(stream.items_.front());
    stream.items_.pop_front();
    if (item.act) item.act(item.work);
    if (item.sets != nullptr) item.sets->done = true;
    return Went::on;
  }
  return any ? Went::outside : Went::nowhere;
}

bool Streams::go_on() {
  const Went went = step();
  if (went == Went::outside) {
    mutex_.unlock();
    std::this_thread::sleep_for(kBetweenTries);
    mutex_.lock();
  }
  return went != Went::nowhere;
}

bool Streams::finish(const Stream& stream) {
  while (!stream.items_.empty()) {
    if (!go_on()) return false;
  }
  join(host_, stream.clock_);
  return true;
}

bool Streams::finish(const Event& event) {
  const std::shared_ptr<Mark> last = event.last;
  while (last != nullptr && !last->done) {
    if (!go_on()) return false;
  }
  if (last != nullptr) join(host_, last->clock);
  return true;
}

bool Streams::finish_all() {
  bool all = true;
  const std::vector<Stream*> there = in_order_;  // other threads may add some meanwhile
  for (const Stream* const stream : there) all = finish(*stream) && all;
  return all;
}

bool Streams::is_done(const Event& event) {
  const std::shared_ptr<Mark> last = event.last;
  if (last != nullptr && !last->done) (void)step();
  if (last != nullptr && !last->done) return false;
  if (last != nullptr) join(host_, last->clock);
  return true;
}

}  // namespace lockstep::ptx
