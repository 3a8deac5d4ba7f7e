// Several steps of SGD, Adam and AdamW against the same steps in double.

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/run_kernel.h"

namespace pipeloom {
namespace {

constexpr int kSteps = 20;

TensorType F32(const Shape& shape) { return {DType::kFloat32, shape}; }

// State starts at zero, as in training; each step has another gradient.
void ExpectStepsLikeDouble(const KernelSpec& spec) {
  KernelRegistry registry;
  RegisterCpuKernels(registry);
  std::vector<RefTensor> expected = MakeOperands(spec, 1);
  for (size_t i = 2; i < expected.size(); ++i) std::fill(expected[i].values.begin(), expected[i].values.end(), 0.0);
  OperandMemory memory(expected);
  const std::vector<double> start = expected[0].values;
  const std::unique_ptr<Kernel> kernel = MakeKernel(registry, spec);
  for (int step = 0; step < kSteps; ++step) {
    expected[1] = MakeOperands(spec, 100 + step)[1];
    for (size_t i = 0; i < expected[1].values.size(); ++i) {
      static_cast<float*>(memory.addresses()[1])[i] = static_cast<float>(expected[1].values[i]);
    }
    ASSERT_TRUE(kernel->Run(memory.addresses(), nullptr).ok());
    RunReference(spec, expected);
  }
  for (size_t operand = 0; operand < expected.size(); ++operand) {
    const std::vector<double> got = memory.Values(operand);
    double largest = 0;
    for (double value : expected[operand].values) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], expected[operand].values[i], 1e-5 * largest) << "operand " << operand << " element " << i;
    }
  }
  EXPECT_NE(memory.Values(0), start);
}

TEST(OptimizerSteps, Sgd) {
  ExpectStepsLikeDouble({"sgd", {F32({1023}), F32({1023})}, {}, {{"lr", 0.05}}});
  ExpectStepsLikeDouble({"sgd", {F32({1023}), F32({1023})}, {}, {{"lr", 0.05}, {"weight_decay", 0.1}}});
}

TEST(OptimizerSteps, Momentum) {
  const TensorType t = F32({1023});
  for (const bool nesterov : {false, true}) {
    ExpectStepsLikeDouble({"sgd", {t, t, t}, {}, {{"lr", 0.05}, {"momentum", 0.9}, {"nesterov", nesterov}}});
    ExpectStepsLikeDouble(
        {"sgd", {t, t, t}, {}, {{"lr", 0.05}, {"momentum", 0.9}, {"nesterov", nesterov}, {"weight_decay", 0.1}}});
  }
}

TEST(OptimizerSteps, Adam) {
  const TensorType t = F32({1023});
  ExpectStepsLikeDouble({"adam", {t, t, t, t, F32({})}, {}, {{"lr", 0.01}}});
  ExpectStepsLikeDouble({"adam", {t, t, t, t, F32({})}, {}, {{"lr", 0.01}, {"weight_decay", 0.1}, {"eps", 1e-4}}});
}

TEST(OptimizerSteps, AdamW) {
  const TensorType t = F32({1023});
  ExpectStepsLikeDouble({"adamw", {t, t, t, t, F32({})}, {}, {{"lr", 0.01}}});
  ExpectStepsLikeDouble({"adamw", {t, t, t, t, F32({})}, {}, {{"lr", 0.01}, {"weight_decay", 0.5}, {"eps", 1e-4}}});
}

// By hand: with g = 1, every step takes lr * weight_decay of w, then moves it by lr / (1 + eps); the moments never see
// the decay.
TEST(OptimizerSteps, AdamWOfAConstantGradient) {
  KernelRegistry registry;
  RegisterCpuKernels(registry);
  const AttributeMap attributes = {{"lr", 0.1}, {"weight_decay", 0.5}};
  const KernelSpec spec{"adamw", {F32({1}), F32({1}), F32({1}), F32({1}), F32({})}, {}, attributes};
  OperandMemory memory({{F32({1}), {1}}, {F32({1}), {1}}, {F32({1}), {0}}, {F32({1}), {0}}, {F32({}), {0}}});
  for (const double expected : {0.85, 0.7075, 0.572125}) {  // 0.95 w - 0.1
    ASSERT_TRUE(RunKernel(registry, spec, memory).ok());
    EXPECT_NEAR(memory.Values(0)[0], expected, 1e-6);
  }
  EXPECT_NEAR(memory.Values(2)[0], 1 - 0.9 * 0.9 * 0.9, 1e-6);
  EXPECT_EQ(memory.Values(4)[0], 3);
}

// By hand: with g = 1 and w = 1, every step of Adam moves w by lr / (1 + eps), since both corrected moments are 1.
TEST(OptimizerSteps, AdamOfAConstantGradient) {
  KernelRegistry registry;
  RegisterCpuKernels(registry);
  const KernelSpec spec{"adam", {F32({1}), F32({1}), F32({1}), F32({1}), F32({})}, {}, {{"lr", 0.1}}};
  OperandMemory memory({{F32({1}), {1}}, {F32({1}), {1}}, {F32({1}), {0}}, {F32({1}), {0}}, {F32({}), {0}}});
  for (int step = 1; step <= 3; ++step) {
    ASSERT_TRUE(RunKernel(registry, spec, memory).ok());
    EXPECT_NEAR(memory.Values(0)[0], 1 - 0.1 * step, 1e-6);
    EXPECT_EQ(memory.Values(4)[0], step);
  }
}

}  // namespace
}  // namespace pipeloom
