// Compares our own declarations of NVML with its header, which is in the toolkit but not available to builds without
// one.
#include <gtest/gtest.h>
#include <nvml.h>

#include <cstddef>

#include "observe/telemetry/nvml.hpp"

namespace lockstep::telemetry::nvml {
namespace {

static_assert(int{success} == int{NVML_SUCCESS} && int{not_supported} == int{NVML_ERROR_NOT_SUPPORTED} &&
              int{gpu_is_lost} == int{NVML_ERROR_GPU_IS_LOST} && int{reset_required} == int{NVML_ERROR_RESET_REQUIRED});
static_assert(kTemperatureOfChip == NVML_TEMPERATURE_GPU && kClockOfProcessors == NVML_CLOCK_SM &&
              kClockOfMemory == NVML_CLOCK_MEM && kEccVolatile == NVML_VOLATILE_ECC);
static_assert(kEventXid == nvmlEventTypeXidCriticalError);
static_assert(kFieldNvlinkSent == NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX &&
              kFieldNvlinkReceived == NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX &&
              kFieldPcieSent == NVML_FI_DEV_PCIE_COUNT_TX_BYTES &&
              kFieldPcieReceived == NVML_FI_DEV_PCIE_COUNT_RX_BYTES);

TEST(NvmlHeader, StructuresAreTheSame) {
  EXPECT_EQ(sizeof(Utilization), sizeof(nvmlUtilization_t));
  EXPECT_EQ(sizeof(Memory), sizeof(nvmlMemory_t));
  EXPECT_EQ(offsetof(Memory, used), offsetof(nvmlMemory_t, used));
  EXPECT_EQ(sizeof(ViolationTime), sizeof(nvmlViolationTime_t));
  EXPECT_EQ(offsetof(ViolationTime, violation_time), offsetof(nvmlViolationTime_t, violationTime));
  EXPECT_EQ(sizeof(EventData), sizeof(nvmlEventData_t));
  EXPECT_EQ(offsetof(EventData, data), offsetof(nvmlEventData_t, eventData));
  EXPECT_EQ(sizeof(FieldValue), sizeof(nvmlFieldValue_t));
  EXPECT_EQ(offsetof(FieldValue, scope), offsetof(nvmlFieldValue_t, scopeId));
  EXPECT_EQ(offsetof(FieldValue, result), offsetof(nvmlFieldValue_t, nvmlReturn));
  EXPECT_EQ(offsetof(FieldValue, value), offsetof(nvmlFieldValue_t, value));
  EXPECT_EQ(sizeof(PciInfo), sizeof(nvmlPciInfo_t));
  EXPECT_EQ(offsetof(PciInfo, bus_id), offsetof(nvmlPciInfo_t, busId));
}

}  // namespace
}  // namespace lockstep::telemetry::nvml
