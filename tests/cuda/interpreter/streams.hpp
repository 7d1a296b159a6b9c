// Streams, events and graphs. A stream is lazy: nothing of it runs until somebody waits, and then, of all streams whose
// next item may run, a drawn one goes on. So whoever forgets to wait finds what stood there before.
//
// A kernel may wait for what comes from outside of the GPU, from another rank: it is tried again and again, and others
// go on meanwhile. Where only such are left, a host that waits lets other threads have the GPU between two tries.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda/interpreter/draw.hpp"
#include "cuda/interpreter/order.hpp"

namespace lockstep::ptx {

using Act = std::function<void(const Work&)>;
/// Goes on as far as it can; true: it is done.
using Try = std::function<bool(const Work&)>;

/// An event as it was recorded once.
struct Mark {
  bool done = false;
  Clock clock;
};

struct Event {
  std::shared_ptr<Mark> last;  ///< null: never recorded
};

/// What a stream recorded, in its order.
struct Graph {
  std::vector<Act> acts;
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
  /// The mutex is held by whoever calls, and free while a host that waits can do nothing.
  Streams(Draw& draw, std::mutex& mutex) : draw_(draw), mutex_(mutex) {}

  Stream* make();
  [[nodiscard]] bool has(const Stream* stream) const { return streams_.contains(stream); }
  [[nodiscard]] std::size_t count() const { return streams_.size(); }
  void destroy(Stream* stream);

  /// Is recorded where the stream records.
  void put(Stream& stream, Act act);
  void launch(Stream& stream, const Graph& graph);
  /// What may have to be tried more than once. Not where the stream records.
  void put_tried(Stream& stream, Try tried);
  void record(Stream& stream, Event& event);
  void wait(Stream& stream, const Event& event);

  void begin(Stream& stream) { stream.recording_.emplace(); }
  static void spoil(Stream& stream) { stream.recording_->broken = true; }
  /// Null: it was spoiled.
  std::unique_ptr<Graph> end(Stream& stream);

  // The host waits; false: what it waits for can never come.
  bool finish(const Stream& stream);
  bool finish(const Event& event);
  bool finish_all();
  /// Whether it is there already; if not, something goes on.
  bool is_done(const Event& event);

  [[nodiscard]] const Order& order() const { return order_; }

  enum class Went : u8 {
    on,       ///< something is done
    outside,  ///< what is left waits for what comes from outside
    nowhere   ///< nothing is left, or it can never go on
  };
  Went step();

 private:
  /// A host that waits has it go on; false: it never will.
  bool go_on();

  Draw& draw_;
  std::mutex& mutex_;
  Order order_;
  Clock host_;  ///< what the host knows to be done
  std::map<const Stream*, std::unique_ptr<Stream>> streams_;
  std::vector<Stream*> in_order_;  ///< as they were made: addresses are no order to draw from
};

}  // namespace lockstep::ptx
