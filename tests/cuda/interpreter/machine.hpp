// The one GPU of a process, behind the functions of CUDA's runtime (cudart_*.cpp), which have no parameter for a
// context: therefore a single object that all of them share. One thread at a time uses it.
//
//   INTERPRETED_GPU_PTX     a folder with the module's PTX, *.ptx
//   INTERPRETED_GPU_SEED    of the random orders (draw.hpp); 1
//   INTERPRETED_GPU_REPORT  a folder, for a report file at the end of the process
//   INTERPRETED_GPU_LOSES   a number, from 1: that wait for an event is lost, of those that order anything
#pragma once

#include <driver_types.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cuda/interpreter/launch.hpp"
#include "cuda/interpreter/pinned_copies.hpp"
#include "cuda/interpreter/ptx_text.hpp"
#include "cuda/interpreter/streams.hpp"

namespace lockstep::ptx {

/// A kernel of the module: its text, its decoded form (from its first launch on), and what was executed of it.
struct LoadedKernel {
  KernelText text;
  std::unique_ptr<Kernel> decoded;
  Counts counts;
};

class Machine {
 public:
  Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  /// Reports leaks, and writes the report.
  ~Machine();

  /// Adds the kernels of the text to the existing ones.
  void load(std::string_view ptx, const std::string& file);
  /// Loads those in the environment's folder; once.
  void load_module();
  /// Launches it on the stream.
  cudaError_t launch(const std::string& kernel, dim3 blocks, dim3 threads, void** arguments, std::size_t shared,
                     Stream& stream);
  /// Counts a wait for an event. True: it is to be lost, so that a test can show that it is missed.
  /// Of a stream, or of the host (null), for an event. One that orders nothing which isn't ordered already is no loss,
  /// and isn't counted.
  bool loses_wait(const Stream* stream, const Event& event);
  /// Leaks are problems: memory, streams, events, graphs.
  void look_for_leaks();

  std::mutex mutex;
  Problems problems;
  Draw draw;
  Memory memory;  ///< sparse where costs are counted
  Streams streams{draw, mutex};
  PinnedCopies pinned_copies;
  std::set<Event*> events;
  std::set<Graph*> graphs;
  std::unique_ptr<Costs> costs;                  ///< null: whole grids run
  std::map<const void*, std::string> functions;  ///< kernels, by their stubs on the host
  std::map<std::string, LoadedKernel> kernels;
  u64 graph_launches = 0, copies = 0, waits = 0;
  int ordinal = -1;  ///< of the process's GPU; -1: none has been used yet

 private:
  void write_report() const;
  bool loaded_ = false;
  u64 lost_;                            ///< the wait that is; 0: none
  std::vector<std::string> lost_from_;  ///< the program's frames at that wait: addresses in it
};

Machine& machine();

}  // namespace lockstep::ptx
