#include "step/optim/gpu_chunk_numbers.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lockstep::optim {

GpuChunkNumbers::GpuChunkNumbers(device::Gpu& gpu, device::Gpu::Stream stream, const Chunks& chunks, Gather gather)
    : gpu_(gpu),
      stream_(stream),
      copied_(gpu.make_event()),
      own_chunks_(chunks.own),
      gather_(std::move(gather)),
      all_bytes_(bytes(chunks.all)),
      own_(gpu, bytes(chunks.own.size())),
      all_on_host_(gpu, all_bytes_),
      flag_(gpu, sizeof(std::uint32_t)),
      all_(gpu, all_bytes_),
      here_(chunks.here) {}

void GpuChunkNumbers::copy_out(const device::PinnedBlock& pinned, const void* from, std::size_t bytes) const {
  if (bytes > 0) gpu_.copy_out(stream_, pinned.get(), static_cast<const std::byte*>(from), bytes);
  gpu_.record(copied_, stream_);
  gpu_.wait(copied_);
  if (bytes > 0) gpu_.reads(pinned.get(), bytes);
}

void GpuChunkNumbers::spread(std::uint32_t* flag, std::uint64_t step) {
  copy_out(flag_, flag, sizeof(*flag));
  std::uint32_t own = 0;
  std::memcpy(&own, flag_.get(), sizeof(own));
  for (const std::size_t chunk : own_chunks_) here_[chunk] = own != 0 ? 1 : 0;
  const std::span<const double> all = gather_(here_, step);
  own = std::any_of(all.begin(), all.end(), [](double set) { return set != 0; }) ? 1 : 0;
  gpu_.fill(flag_.get(), reinterpret_cast<const std::byte*>(&own), sizeof(own));
  gpu_.copy_in(stream_, reinterpret_cast<std::byte*>(flag), flag_.get(), sizeof(own));
}

const double* GpuChunkNumbers::gather(const double* own, std::uint64_t step) {
  copy_out(own_, own, bytes(own_chunks_.size()));
  for (std::size_t i = 0; i < own_chunks_.size(); ++i) here_[own_chunks_[i]] = own_.as<const double>()[i];
  const std::span<const double> all = gather_(here_, step);
  if (all_bytes_ > 0) {
    gpu_.fill(all_on_host_.get(), reinterpret_cast<const std::byte*>(all.data()), all_bytes_);
    gpu_.copy_in(stream_, all_.get(), all_on_host_.get(), all_bytes_);
  }
  return all_.as<const double>();
}

}  // namespace lockstep::optim
