// The updates whose factors are operands, against steps of MindSpore's own CPU optimizers: the same bits.

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "tests/kernels/mindspore_updates.h"
#include "tests/kernels/run_kernel.h"

namespace pipeloom {
namespace {

using mindspore_updates::kElements;
using mindspore_updates::kGradients;
using mindspore_updates::kSteps;
using mindspore_updates::kWeight;

using Factors = std::vector<float>;

const TensorType& Elements() {
  static const auto* const type = new TensorType{DType::kFloat32, {kElements}};
  return *type;
}

// `starts`: of each state. `expected[step][operand]`: the weight, then the states, of which the first `compared`
// elements count.
template <size_t kOperands>
void ExpectSameBits(const std::string& op, const AttributeMap& attributes, const std::vector<float>& starts,
                    Factors (*factors)(int step), const float (&expected)[kSteps][kOperands][kElements],
                    int compared = kElements) {
  KernelRegistry registry;
  RegisterCpuKernels(registry);
  ASSERT_EQ(starts.size() + 1, kOperands);
  std::vector<RefTensor> operands = {{Elements(), {std::begin(kWeight), std::end(kWeight)}}, {Elements(), {}}};
  operands[1].values.resize(kElements);
  for (float start : starts) operands.push_back({Elements(), std::vector<double>(kElements, start)});
  const size_t first_factor = operands.size();
  for (float factor : factors(1)) operands.push_back({{DType::kFloat32, {}}, {factor}});
  KernelSpec spec{op, {}, {}, attributes};
  for (const RefTensor& operand : operands) spec.inputs.push_back(operand.type);

  OperandMemory memory(operands);
  const std::unique_ptr<Kernel> kernel = MakeKernel(registry, spec);
  for (int step = 0; step < kSteps; ++step) {
    SCOPED_TRACE(op + " " + AttributesToString(attributes) + " step " + std::to_string(step + 1));
    std::memcpy(memory.addresses()[1], kGradients[step], sizeof(kGradients[step]));
    const Factors of_step = factors(step + 1);
    for (size_t i = 0; i < of_step.size(); ++i) {
      *static_cast<float*>(memory.addresses()[first_factor + i]) = of_step[i];
    }
    ASSERT_TRUE(kernel->Run(memory.addresses(), nullptr).ok());
    for (size_t written = 0; written < kOperands; ++written) {
      const float* got = static_cast<const float*>(memory.addresses()[written == 0 ? 0 : written + 1]);
      for (int i = 0; i < compared; ++i) {
        ASSERT_EQ(got[i], expected[step][written][i]) << "operand " << written << " element " << i;
      }
    }
  }
}

Factors SgdFactors(int) { return {0.03f, 0.9f}; }

TEST(MindSporeUpdates, Sgd) {
  const std::vector<float> starts = {0.25f, 1.f};
  ExpectSameBits("apply_sgd", {}, starts, SgdFactors, mindspore_updates::kSgd);
  ExpectSameBits("apply_sgd", {{"dampening", 0.3}, {"weight_decay", 0.1}}, starts, SgdFactors,
                 mindspore_updates::kSgdDampened);
  ExpectSameBits("apply_sgd", {{"nesterov", true}, {"weight_decay", 0.1}}, starts, SgdFactors,
                 mindspore_updates::kSgdNesterov);
  ExpectSameBits(
      "apply_sgd", {{"weight_decay", 0.1}}, starts,
      [](int) {
        return Factors{0.03f, 0.f};
      },
      mindspore_updates::kSgdWithoutMomentum);
}

TEST(MindSporeUpdates, Momentum) {
  ExpectSameBits("apply_momentum", {}, {0.25f}, SgdFactors, mindspore_updates::kMomentum);
}

Factors AdamFactors(int step) {
  return {
      static_cast<float>(std::pow(0.9f, step)), static_cast<float>(std::pow(0.999f, step)), 0.01f, 0.9f, 0.999f, 1e-8f};
}

TEST(MindSporeUpdates, Adam) {
  ExpectSameBits("apply_adam", {}, {0.f, 0.f}, AdamFactors, mindspore_updates::kAdam);
  // What is left of a block of 16 rounds another way there, and where blocks end depends on its threads.
  ExpectSameBits("apply_adam", {{"nesterov", true}}, {0.f, 0.f}, AdamFactors, mindspore_updates::kAdamNesterov, 16);
}

TEST(MindSporeUpdates, AdamWeightDecay) {
  ExpectSameBits(
      "apply_adamw", {}, {0.f, 0.f},
      [](int) {
        return Factors{0.01f, 0.9f, 0.999f, 1e-6f, 0.1f};
      },
      mindspore_updates::kAdamW);
}

// A value that is the parameter itself, and integers beyond what float holds.
TEST(AssignTest, TakesTheParameterItself) {
  KernelRegistry registry;
  RegisterCpuKernels(registry);
  const TensorType type{DType::kInt32, {2}};
  OperandMemory memory({{type, {16777217, -3}}, {type, {0, 0}}});
  memory.addresses()[1] = memory.addresses()[0];
  ASSERT_TRUE(RunKernel(registry, {"assign", {type, type}, {}, {}}, memory).ok());
  EXPECT_EQ(memory.Values(0), (std::vector<double>{16777217, -3}));
  ASSERT_TRUE(RunKernel(registry, {"assign_add", {type, type}, {}, {}}, memory).ok());
  EXPECT_EQ(memory.Values(0), (std::vector<double>{33554434, -6}));
}

}  // namespace
}  // namespace pipeloom
