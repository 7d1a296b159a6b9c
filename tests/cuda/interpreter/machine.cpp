#include "cuda/interpreter/machine.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "cuda/interpreter/decode.hpp"

namespace lockstep::ptx {

namespace {

/// That a launch may ask for; for more, the kernel has to have an attribute set.
constexpr std::size_t kMostShared = 48 * 1024;

u32 number_in(const char* variable, u32 otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<u32>(std::strtoul(text, nullptr, 10));
}

}  // namespace

Machine::Machine()
    : draw(number_in("INTERPRETED_GPU_SEED", 1)),
      costs(Costs::asked_for()),
      lost_(number_in("INTERPRETED_GPU_LOSES", 0)) {
  if (costs != nullptr) memory.make_sparse();
}

Machine::~Machine() {
  look_for_leaks();
  write_report();
}

void Machine::load(std::string_view ptx, const std::string& file) {
  try {
    for (KernelText& text : read_ptx(ptx, file)) {
      const std::string name = text.name;
      kernels[name] = {std::move(text), nullptr, {}};
    }
  } catch (const std::runtime_error& error) {
    problems.add(error.what());
  }
}

void Machine::load_module() {
  const char* const folder = std::getenv("INTERPRETED_GPU_PTX");
  if (loaded_ || folder == nullptr) return;
  loaded_ = true;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".ptx") continue;
    std::ifstream file(entry.path());
    load(std::string(std::istreambuf_iterator<char>(file), {}), entry.path().filename());
  }
}

cudaError_t Machine::launch(const std::string& kernel, dim3 blocks, dim3 threads, void** arguments, std::size_t shared,
                            Stream& stream) {
  const auto found = kernels.find(kernel);
  if (found == kernels.end()) {
    problems.add("no PTX of kernel " + kernel);
    return cudaErrorNoKernelImageForDevice;
  }
  LoadedKernel& loaded = found->second;
  if (loaded.decoded == nullptr) {
    try {
      loaded.decoded = std::make_unique<Kernel>(decode(loaded.text));
    } catch (const std::runtime_error& error) {
      problems.add(error.what());
      return cudaErrorInvalidPtx;
    }
  }
  const Kernel& code = *loaded.decoded;
  const bool has_one_dimension = blocks.y == 1 && blocks.z == 1 && threads.y == 1 && threads.z == 1;
  const std::size_t most_shared = code.has_dynamic_shared ? kMostShared : 0;
  if (!has_one_dimension || blocks.x == 0 || blocks.x > 0x7fffffffU || threads.x == 0 || threads.x > code.max_threads ||
      shared > most_shared) {
    problems.add(
        fmt::format("{}: a launch of {} x {} x {} blocks of {} x {} x {} threads with {} bytes of shared memory",
                    kernel, blocks.x, blocks.y, blocks.z, threads.x, threads.y, threads.z, shared));
    return cudaErrorInvalidConfiguration;
  }
  std::vector<u8> parameters(code.parameter_bytes);
  for (std::size_t i = 0; i < code.parameters.size(); ++i) {
    std::memcpy(parameters.data() + code.parameters[i].at, arguments[i], code.parameters[i].bytes);
  }
  const std::size_t shared_bytes = code.shared_bytes + shared;
  streams.put(stream, [this, &loaded, blocks, threads, shared_bytes, parameters](const Work& work) {
    execute({*loaded.decoded, blocks.x, threads.x, shared_bytes, parameters, loaded.counts, memory, problems, draw,
             streams.order(), work, costs.get()});
  });
  return cudaSuccess;
}

bool Machine::loses_wait(const Stream* stream, const Event& event) {
  if (!streams.would_order(stream, event) || ++waits != lost_) return false;
  std::array<void*, 24> frames{};
  const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  Dl_info at{};
  for (int i = 0; i < count; ++i) {
    if (::dladdr(frames[static_cast<std::size_t>(i)], &at) == 0) continue;
    if (std::string_view(at.dli_fname).find(".so") != std::string_view::npos) continue;
    const auto first = reinterpret_cast<u64>(at.dli_fbase);
    lost_from_.push_back(fmt::format("{:x}", reinterpret_cast<u64>(frames[static_cast<std::size_t>(i)]) - first));
  }
  return true;
}

void Machine::look_for_leaks() {
  if (const std::string left = memory.leaks(); !left.empty()) problems.add(left);
  const auto say = [&](std::size_t count, const char* what) {
    if (count != 0) problems.add(fmt::format("{} {} are left at the end", count, what));
  };
  say(streams.count(), "streams");
  say(events.size(), "events");
  say(graphs.size(), "graphs");
}

Machine& machine() {
  static Machine one;
  return one;
}

}  // namespace lockstep::ptx
