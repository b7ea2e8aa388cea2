#pragma once

#include <cuda_runtime_api.h>

#include <mutex>
#include <utility>

#include "uper/nn/cuda/runtime/cuda_error.h"

namespace uper::cuda {

// Handles of the CUDA runtime that free themselves.

// While one thread records a graph, no other thread may record or wait for the whole GPU: both
// would fail.
inline std::mutex& RecordingMutex() {
  static std::mutex mutex;
  return mutex;
}

// Waits for all work that any thread has given to the GPU.
inline void SynchronizeGpu(const char* what) {
  const std::lock_guard lock(RecordingMutex());
  CheckCuda(cudaDeviceSynchronize(), what);
}

class Stream {
 public:
  Stream() {
    CheckCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { cudaStreamDestroy(stream_); }

  operator cudaStream_t() const { return stream_; }  // NOLINT: a handle
  // Whether all work on the stream has ended. Throws if something failed.
  bool IsDone() const {
    const cudaError_t status = cudaStreamQuery(stream_);
    if (status == cudaErrorNotReady) return false;
    CheckCuda(status, "waiting for the GPU");
    return true;
  }
  void Synchronize() const { CheckCuda(cudaStreamSynchronize(stream_), "waiting for the GPU"); }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() {
    CheckCuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }

  operator cudaEvent_t() const { return event_; }  // NOLINT: a handle

  void Record(cudaStream_t stream) const {
    CheckCuda(cudaEventRecord(event_, stream), "cudaEventRecord");
  }
  // Waits for the work before the last Record(), if there was one.
  void Synchronize() const { CheckCuda(cudaEventSynchronize(event_), "waiting for the GPU"); }

  // Work that is enqueued on `after` from now on waits for the work on `before`.
  void Order(cudaStream_t before, cudaStream_t after) const {
    CheckCuda(cudaEventRecord(event_, before), "cudaEventRecord");
    CheckCuda(cudaStreamWaitEvent(after, event_), "cudaStreamWaitEvent");
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// A sequence of kernels and copies that is recorded once and enqueued with one call.
class Graph {
 public:
  Graph() = default;
  // Records what `enqueue` puts on the stream, and on streams that it forks from it and joins.
  template <typename Enqueue>
  Graph(cudaStream_t stream, const Enqueue& enqueue) {
    const std::lock_guard lock(RecordingMutex());
    CheckCuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "recording a graph");
    cudaGraph_t graph = nullptr;
    try {
      enqueue();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      throw;
    }
    CheckCuda(cudaStreamEndCapture(stream, &graph), "recording a graph");
    const cudaError_t status = cudaGraphInstantiate(&graph_, graph, 0);
    cudaGraphDestroy(graph);
    CheckCuda(status, "cudaGraphInstantiate");
  }
  Graph(Graph&& other) noexcept : graph_(std::exchange(other.graph_, nullptr)) {}
  Graph& operator=(Graph&& other) noexcept {
    std::swap(graph_, other.graph_);
    return *this;
  }
  ~Graph() {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  }

  explicit operator bool() const { return graph_ != nullptr; }
  void Launch(cudaStream_t stream) const {
    CheckCuda(cudaGraphLaunch(graph_, stream), "starting a graph");
  }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace uper::cuda
