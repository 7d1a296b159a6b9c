#include "core/rdma.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>

#include "core/files.hpp"

namespace lockstep {

namespace {

constexpr std::int64_t kEnough = std::int64_t{1} << 30;  // NCCL's and UCX's buffers, with many peers

// CAP_IPC_LOCK: the limit does not hold.
bool may_lock_anything() {
  constexpr unsigned kIpcLock = 14;
  const std::string status = read_kernel_file("/proc/self/status");
  const auto at = status.find("CapEff:");
  return at != std::string::npos && (std::strtoull(status.c_str() + at + 7, nullptr, 16) >> kIpcLock & 1) != 0;
}

}  // namespace

RdmaFacts rdma_facts(const std::string& folder) {
  RdmaFacts facts;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    facts.devices += entry.path().filename().string().starts_with("uverbs") ? 1 : 0;
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur < static_cast<rlim_t>(RdmaFacts::kNoLimit)) {
    facts.lockable_bytes = limit.rlim_cur;
  } else {
    facts.lockable_bytes = RdmaFacts::kNoLimit;
  }
  if (may_lock_anything()) facts.lockable_bytes = RdmaFacts::kNoLimit;
  return facts;
}

std::string rdma_problem(const RdmaFacts& facts, const std::string& host) {
  if (facts.devices == 0) {
    return fmt::format(
        "expected an RDMA device (uverbs) in /dev/infiniband on {}, found none; see that the device plugin gives one "
        "to the pod, or train without RDMA (network.profile: tcp)",
        host);
  }
  if (facts.lockable_bytes >= kEnough) return "";
  return fmt::format(
      "expected at least 1 GiB of memory that may be locked for RDMA on {}, found {} KiB (ulimit -l); set "
      "LimitMEMLOCK=infinity for the container runtime there",
      host, facts.lockable_bytes >> 10);
}

bool is_rdma_required() {
  const char* value = std::getenv("LOCKSTEP_RDMA");
  return value != nullptr && std::string(value) == "required";
}

}  // namespace lockstep
