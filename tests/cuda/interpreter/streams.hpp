// Streams, events and graphs. A stream is lazy: nothing on it runs until somebody waits; then, among all streams whose
// next item may run, a random one progresses. So code that forgets to wait finds the old contents of memory.
//
// A kernel may wait for data from outside the GPU, from another rank: it is tried repeatedly, and others progress
// meanwhile. If only such kernels are left, a waiting host lets other threads use the GPU between two tries.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "cuda/interpreter/draw.hpp"
#include "cuda/interpreter/order.hpp"

namespace lockstep::ptx {

using Act = std::function<void(const Work&)>;
/// Work that is put on a stream: it may differ from what the same graph puts there next.
using Put = std::function<Act()>;
/// Makes as much progress as it can; true: it is done.
using Try = std::function<bool(const Work&)>;

/// One recording of an event.
struct Mark {
  bool done = false;
  Clock clock;
};

struct Event {
  std::shared_ptr<Mark> last;  ///< null: never recorded
};

/// The works recorded from a stream, in order.
struct Graph {
  std::vector<Put> puts;
};

/// A graph that is being recorded.
struct Recording {
  Graph graph;
  bool broken = false;
};

class Stream {
 public:
  explicit Stream(u32 number) : number_(number) {}

  [[nodiscard]] bool is_recording() const { return recording_.has_value(); }
  [[nodiscard]] bool is_idle() const { return items_.empty(); }

 private:
  friend class Streams;
  struct Item {
    Act act;
    Work work;
    std::shared_ptr<Mark> waits, sets;
    Try tried = {};
  };
  u32 number_;
  Clock clock_;
  std::deque<Item> items_;
  std::optional<Recording> recording_;
};

class Streams {
 public:
  /// The caller holds the mutex; it is released while a waiting host can do nothing.
  Streams(Draw& draw, std::mutex& mutex) : draw_(draw), mutex_(mutex) {}

  Stream* make();
  [[nodiscard]] bool has(const Stream* stream) const { return streams_.contains(stream); }
  [[nodiscard]] std::size_t count() const { return streams_.size(); }
  void destroy(Stream* stream);

  /// Recorded if the stream is recording.
  void put(Stream& stream, Act act) {
    put_made(stream, [act = std::move(act)] { return act; });
  }
  void put_made(Stream& stream, Put put);
  void launch(Stream& stream, const Graph& graph);
  /// For work that may have to be tried several times. Not while the stream is recording.
  void put_tried(Stream& stream, Try tried);
  void record(Stream& stream, Event& event);
  void wait(Stream& stream, const Event& event);
  /// Whether waiting for the event would order anything that isn't ordered yet: for the stream, or for the host (null).
  [[nodiscard]] bool would_order(const Stream* stream, const Event& event) const;

  void begin(Stream& stream) { stream.recording_.emplace(); }
  static void spoil(Stream& stream) { stream.recording_->broken = true; }
  /// Null: the recording was spoiled.
  std::unique_ptr<Graph> end(Stream& stream);

  // The host waits; false: what it waits for can never happen.
  bool finish(const Stream& stream);
  bool finish(const Event& event);
  bool finish_all();
  /// Whether the event is done already; if not, some work progresses.
  bool is_done(const Event& event);

  [[nodiscard]] const Order& order() const { return order_; }
  [[nodiscard]] const Clock& host() const { return host_; }
  /// All that can be done is done, of which the host knows nothing.
  void run_out() {
    while (step() == Went::on) {
    }
  }

  enum class Went : u8 {
    on,       ///< something is done
    outside,  ///< the rest waits for something outside the GPU
    nowhere   ///< nothing is left, or it can never progress
  };
  Went step();

 private:
  /// A waiting host calls it to make progress; false: there never will be any.
  bool go_on();

  Draw& draw_;
  std::mutex& mutex_;
  Order order_;
  Clock host_;  ///< what the host knows to be done
  std::map<const Stream*, std::unique_ptr<Stream>> streams_;
  std::vector<Stream*> in_order_;  ///< in the order of creation: an order by address would not be reproducible
};

}  // namespace lockstep::ptx
