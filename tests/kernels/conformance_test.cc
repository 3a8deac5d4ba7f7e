// One suite over every kernel of the registry: against plain loops in double, and for the promises of kernel.h.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/run_kernel.h"
#include "tests/testlib/allocation_count.h"

namespace pipeloom {
namespace {

KernelRegistry CpuRegistry() {
  KernelRegistry registry;
  RegisterCpuKernels(registry);
  return registry;
}

KernelKey KeyOf(const KernelSpec& spec) {
  return {spec.op, kCpuDevice, spec.outputs.empty() ? spec.inputs[0].dtype : spec.outputs[0].dtype};
}

std::string KeyName(const KernelKey& key) { return key.op + "_" + std::string(Info(key.dtype).name); }

// The cases of one key at a time, so that a failure is told by op.
class KernelConformance : public testing::TestWithParam<KernelKey> {
 protected:
  std::vector<KernelCase> Cases() const {
    std::vector<KernelCase> cases = AllKernelCases();
    cases.erase(
        std::remove_if(cases.begin(), cases.end(), [](const KernelCase& c) { return !(KeyOf(c.spec) == GetParam()); }),
        cases.end());
    return cases;
  }

  // Every operand's bits after a run.
  std::vector<std::string> BitsAfterRun(const KernelSpec& spec, const std::vector<RefTensor>& operands,
                                        int64_t offset) {
    OperandMemory memory(operands, offset);
    const absl::Status status = RunKernel(registry_, spec, memory);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<std::string> bits;
    for (size_t i = 0; i < operands.size(); ++i) bits.push_back(memory.Bits(i));
    return bits;
  }

  const KernelRegistry registry_ = CpuRegistry();
};

TEST_P(KernelConformance, HasReferenceAndCases) {
  EXPECT_TRUE(HasReference(GetParam().op));
  EXPECT_FALSE(Cases().empty());
}

TEST_P(KernelConformance, EqualsPlainLoopsInDouble) {
  for (const KernelCase& c : Cases()) {
    SCOPED_TRACE(c.Name());
    std::vector<RefTensor> expected = MakeOperands(c.spec, 7);
    OperandMemory memory(expected);
    const absl::Status status = RunKernel(registry_, c.spec, memory);
    ASSERT_TRUE(status.ok()) << status;
    RunReference(c.spec, expected);
    for (size_t i = 0; i < expected.size(); ++i) {
      const std::vector<double>& want = expected[i].values;
      const std::vector<double> got = memory.Values(i);
      ASSERT_EQ(got.size(), want.size());
      double largest = 0;
      for (double value : want) largest = std::isinf(value) ? largest : std::max(largest, std::abs(value));
      const double tolerance = expected[i].type.dtype == DType::kFloat32 ? 1e-5 * largest : 0;
      for (size_t j = 0; j < want.size(); ++j) {
        if (std::isnan(want[j])) {
          ASSERT_TRUE(std::isnan(got[j])) << "operand " << i << " element " << j << " is " << got[j];
        } else if (std::isinf(want[j])) {
          ASSERT_EQ(got[j], want[j]) << "operand " << i << " element " << j;
        } else {
          ASSERT_NEAR(got[j], want[j], tolerance) << "operand " << i << " element " << j;
        }
      }
    }
  }
}

TEST_P(KernelConformance, BitsDoNotDependOnAddressesOrFormerRuns) {
  for (const KernelCase& c : Cases()) {
    SCOPED_TRACE(c.Name());
    const std::vector<RefTensor> operands = MakeOperands(c.spec, 11);
    const std::vector<std::string> bits = BitsAfterRun(c.spec, operands, 0);
    for (int64_t offset : {0, 1, 7}) {
      // No ASSERT_EQ: it would print the bits.
      ASSERT_TRUE(BitsAfterRun(c.spec, operands, offset) == bits) << "operands " << offset << " elements off";
    }
  }
}

TEST_P(KernelConformance, InPlaceGivesTheSameBits) {
  for (const KernelCase& c : Cases()) {
    if (!c.in_place) continue;
    SCOPED_TRACE(c.Name());
    const std::vector<RefTensor> operands = MakeOperands(c.spec, 13);
    OperandMemory memory(operands);
    memory.addresses()[c.spec.inputs.size()] = memory.addresses()[0];
    const absl::Status status = RunKernel(registry_, c.spec, memory);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(memory.Bits(c.spec.inputs.size()) == BitsAfterRun(c.spec, operands, 0).back());
  }
}

TEST_P(KernelConformance, AllocatesNothing) {
  for (const KernelCase& c : Cases()) {
    SCOPED_TRACE(c.Name());
    OperandMemory memory(MakeOperands(c.spec, 17));
    const std::unique_ptr<Kernel> kernel = MakeKernel(registry_, c.spec);
    Buffer scratch(kernel->scratch_bytes());
    const int64_t before = AllocationCount();
    const absl::Status status = kernel->Run(memory.addresses(), scratch.data());
    EXPECT_EQ(AllocationCount(), before);
    ASSERT_TRUE(status.ok()) << status;
  }
}

TEST_P(KernelConformance, NeverUsesReferenceImplementations) {
  for (const KernelCase& c : Cases()) {
    const std::string name = MakeKernel(registry_, c.spec)->implementation();
    EXPECT_EQ(name.find("ref"), std::string::npos) << c.Name() << " uses " << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, KernelConformance, testing::ValuesIn(CpuRegistry().keys()),
                         [](const testing::TestParamInfo<KernelKey>& info) { return KeyName(info.param); });

// A case for what the registry lacks would never run.
TEST(KernelCases, AllHaveAKernel) {
  const std::vector<KernelKey> keys = CpuRegistry().keys();
  for (const KernelCase& c : AllKernelCases()) {
    EXPECT_EQ(std::count(keys.begin(), keys.end(), KeyOf(c.spec)), 1) << c.Name();
  }
}

TEST(AllocationCount, CountsOperatorNew) {
  const int64_t before = AllocationCount();
  ::operator delete(::operator new(8));
  EXPECT_EQ(AllocationCount(), before + 1);
}

}  // namespace
}  // namespace pipeloom
