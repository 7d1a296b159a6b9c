// CUDA's runtime: streams, events and graphs.
#include <cstring>
#include <memory>

#include "cuda/interpreter/cudart.hpp"

namespace lockstep::ptx {

namespace {

/// Null, with a problem, if it does not exist.
Event* event_of(cudaEvent_t event, const char* call) {
  auto* const found = reinterpret_cast<Event*>(event);
  if (machine().events.contains(found)) return found;
  machine().problems.add(std::string(call) + ": an event that isn't there");
  (void)failed(cudaErrorInvalidResourceHandle);
  return nullptr;
}

Graph* graph_of(const void* graph, const char* call) {
  auto* const found = static_cast<Graph*>(const_cast<void*>(graph));
  if (machine().graphs.contains(found)) return found;
  machine().problems.add(std::string(call) + ": a graph that isn't there");
  (void)failed(cudaErrorInvalidResourceHandle);
  return nullptr;
}

cudaError_t destroy_graph(const void* graph, const char* call) {
  Graph* const found = graph_of(graph, call);
  if (found == nullptr) return cudaErrorInvalidResourceHandle;
  machine().graphs.erase(found);
  delete found;
  return state();
}

/// After the host has waited; `came`: whether the awaited work was ever done.
cudaError_t waited(bool came, const char* call) {
  if (came) return state();
  machine().problems.add(std::string(call) + " waits for what never comes");
  return failed(cudaErrorLaunchTimeout);
}

/// A recording must not cross streams: the module records one stream at a time.
bool crosses_recording(const Stream& stream, const char* call) {
  if (!stream.is_recording()) return false;
  machine().problems.add(std::string(call) + " on a stream that is recorded isn't known");
  Streams::spoil(const_cast<Stream&>(stream));
  (void)failed(cudaErrorStreamCaptureUnsupported);
  return true;
}

}  // namespace

}  // namespace lockstep::ptx

using lockstep::ptx::event_of;
using lockstep::ptx::failed;
using lockstep::ptx::kRefused;
using lockstep::ptx::machine;
using lockstep::ptx::refused_while_recording;
using lockstep::ptx::state;
using lockstep::ptx::stream_of;

extern "C" {

cudaError_t cudaDeviceSynchronize() {
  LOCKSTEP_INTERPRETED;
  if (refused_while_recording("cudaDeviceSynchronize")) return kRefused;
  return lockstep::ptx::waited(machine().streams.finish_all(), "cudaDeviceSynchronize");
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  LOCKSTEP_INTERPRETED;
  if (!lockstep::ptx::is_known("cudaStreamCreateWithFlags", flags, cudaStreamNonBlocking)) return cudaErrorInvalidValue;
  *stream = reinterpret_cast<cudaStream_t>(machine().streams.make());
  return state();
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  LOCKSTEP_INTERPRETED;
  auto* const found = stream_of(stream, "cudaStreamDestroy");
  if (found == nullptr) return cudaErrorInvalidResourceHandle;
  machine().streams.destroy(found);
  return state();
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  LOCKSTEP_INTERPRETED;
  if (refused_while_recording("cudaStreamSynchronize")) return kRefused;
  auto* const found = stream_of(stream, "cudaStreamSynchronize");
  if (found == nullptr) return cudaErrorInvalidResourceHandle;
  return lockstep::ptx::waited(machine().streams.finish(*found), "cudaStreamSynchronize");
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  LOCKSTEP_INTERPRETED;
  if (!lockstep::ptx::is_known("cudaStreamWaitEvent", flags, cudaEventWaitDefault)) return cudaErrorInvalidValue;
  auto* const on = stream_of(stream, "cudaStreamWaitEvent");
  auto* const what = event_of(event, "cudaStreamWaitEvent");
  if (on == nullptr || what == nullptr) return cudaErrorInvalidResourceHandle;
  if (lockstep::ptx::crosses_recording(*on, "cudaStreamWaitEvent")) return kRefused;
  if (!machine().loses_wait(on, *what)) machine().streams.wait(*on, *what);
  return state();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  LOCKSTEP_INTERPRETED;
  if (!lockstep::ptx::is_known("cudaEventCreateWithFlags", flags, cudaEventDisableTiming)) return cudaErrorInvalidValue;
  *event = reinterpret_cast<cudaEvent_t>(*machine().events.insert(new lockstep::ptx::Event).first);
  return state();
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  LOCKSTEP_INTERPRETED;
  auto* const found = event_of(event, "cudaEventDestroy");
  if (found == nullptr) return cudaErrorInvalidResourceHandle;
  machine().events.erase(found);
  delete found;
  return state();
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  LOCKSTEP_INTERPRETED;
  auto* const on = stream_of(stream, "cudaEventRecord");
  auto* const what = event_of(event, "cudaEventRecord");
  if (on == nullptr || what == nullptr) return cudaErrorInvalidResourceHandle;
  if (!lockstep::ptx::is_on_its_gpu("cudaEventRecord")) return cudaErrorInvalidResourceHandle;
  if (lockstep::ptx::crosses_recording(*on, "cudaEventRecord")) return kRefused;
  machine().streams.record(*on, *what);
  return state();
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  LOCKSTEP_INTERPRETED;
  if (refused_while_recording("cudaEventSynchronize")) return kRefused;
  auto* const found = event_of(event, "cudaEventSynchronize");
  if (found == nullptr) return cudaErrorInvalidResourceHandle;
  if (machine().loses_wait(nullptr, *found)) return state();
  return lockstep::ptx::waited(machine().streams.finish(*found), "cudaEventSynchronize");
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  LOCKSTEP_INTERPRETED;
  if (refused_while_recording("cudaEventQuery")) return kRefused;
  auto* const found = event_of(event, "cudaEventQuery");
  if (found == nullptr) return cudaErrorInvalidResourceHandle;
  return machine().streams.is_done(*found) ? state() : failed(cudaErrorNotReady);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  LOCKSTEP_INTERPRETED;
  if (!lockstep::ptx::is_known("cudaStreamBeginCapture", mode, cudaStreamCaptureModeThreadLocal))
    return cudaErrorInvalidValue;
  auto* const found = stream_of(stream, "cudaStreamBeginCapture");
  if (found == nullptr) return cudaErrorInvalidResourceHandle;
  if (refused_while_recording("cudaStreamBeginCapture")) return kRefused;
  machine().streams.begin(*found);
  lockstep::ptx::recorded_here() = found;
  return state();
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  LOCKSTEP_INTERPRETED;
  auto* const found = stream_of(stream, "cudaStreamEndCapture");
  if (found == nullptr) return cudaErrorInvalidResourceHandle;
  *graph = nullptr;
  if (!found->is_recording() || lockstep::ptx::recorded_here() != found) {
    machine().problems.add("cudaStreamEndCapture of a stream that this thread doesn't record");
    return failed(cudaErrorIllegalState);
  }
  lockstep::ptx::recorded_here() = nullptr;
  auto recorded = machine().streams.end(*found);
  if (recorded == nullptr) return failed(cudaErrorStreamCaptureInvalidated);
  *graph = reinterpret_cast<cudaGraph_t>(*machine().graphs.insert(recorded.release()).first);
  return state();
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* runnable, cudaGraph_t graph, unsigned long long flags) {
  LOCKSTEP_INTERPRETED;
  if (!lockstep::ptx::is_known("cudaGraphInstantiate", flags, 0)) return cudaErrorInvalidValue;
  const auto* const found = lockstep::ptx::graph_of(graph, "cudaGraphInstantiate");
  if (found == nullptr) return cudaErrorInvalidResourceHandle;
  *runnable = reinterpret_cast<cudaGraphExec_t>(*machine().graphs.insert(new lockstep::ptx::Graph(*found)).first);
  return state();
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  LOCKSTEP_INTERPRETED;
  return lockstep::ptx::destroy_graph(graph, "cudaGraphDestroy");
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  LOCKSTEP_INTERPRETED;
  return lockstep::ptx::destroy_graph(graph, "cudaGraphExecDestroy");
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  LOCKSTEP_INTERPRETED;
  auto* const on = stream_of(stream, "cudaGraphLaunch");
  const auto* const found = lockstep::ptx::graph_of(graph, "cudaGraphLaunch");
  if (on == nullptr || found == nullptr) return cudaErrorInvalidResourceHandle;
  if (lockstep::ptx::crosses_recording(*on, "cudaGraphLaunch")) return kRefused;
  ++machine().graph_launches;
  machine().streams.launch(*on, *found);
  return state();
}

}  // extern "C"
