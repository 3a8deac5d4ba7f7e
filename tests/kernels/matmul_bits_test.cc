// What the equality of pipelined and unpipelined training rests on (docs/design.md): a product's rows do not depend on
// how many there are nor on addresses, and an epilogue gives the bits of its ops run one by one.

#include <omp.h>

#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/run_kernel.h"

namespace pipeloom {
namespace {

TensorType F32(const Shape& shape) { return {DType::kFloat32, shape}; }

class MatmulBits : public testing::Test {
 protected:
  MatmulBits() { RegisterCpuKernels(registry_); }

  static KernelSpec Spec(const std::string& kernel, int64_t m, int64_t k, int64_t n, bool transpose_b,
                         const std::string& epilogue = "") {
    AttributeMap attributes = {{"kernel", kernel}, {"transpose_b", transpose_b}};
    if (!epilogue.empty()) attributes["epilogue"] = epilogue;
    return {"matmul", {F32({m, k}), F32(transpose_b ? Shape{n, k} : Shape{k, n})}, {F32({m, n})}, attributes};
  }

  // Whether this machine has what kernel=`kernel` asks for.
  bool Has(const std::string& kernel) {
    return MakeKernel(registry_, Spec(kernel, 8, 64, 64, false))->implementation().rfind(kernel, 0) == 0;
  }

  // Bits of the result after a run on `operands`, each `offset` elements past a 64-byte boundary.
  std::string Run(const KernelSpec& spec, const std::vector<RefTensor>& operands, int64_t offset = 0) {
    OperandMemory memory(operands, offset);
    const absl::Status status = RunKernel(registry_, spec, memory);
    EXPECT_TRUE(status.ok()) << status;
    return memory.Bits(operands.size() - 1);
  }

  KernelRegistry registry_;
};

// The kernels that promise rows which do not depend on their number.
class MatmulRows : public MatmulBits, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (!Has(GetParam())) GTEST_SKIP() << "this machine has no " << GetParam();
  }
};

INSTANTIATE_TEST_SUITE_P(Cpu, MatmulRows, testing::Values("brg", "rows"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

TEST_P(MatmulRows, ABatchHasTheBitsOfItsProducts) {
  constexpr int64_t kBatch = 5;
  for (const bool transpose_b : {false, true}) {
    KernelSpec one = Spec(GetParam(), 8, 70, 65, transpose_b);
    KernelSpec all = one;
    all.op = "batch_matmul";
    for (TensorType& type : all.inputs) type.shape.insert(type.shape.begin(), kBatch);
    all.outputs[0].shape.insert(all.outputs[0].shape.begin(), kBatch);
    const std::vector<RefTensor> operands = MakeOperands(all, 3);
    std::string expected;
    for (int64_t i = 0; i < kBatch; ++i) {
      std::vector<RefTensor> parts = MakeOperands(one, 3);
      for (size_t k = 0; k < parts.size(); ++k) {
        const int64_t count = parts[k].type.num_elements();
        parts[k].values.assign(operands[k].values.begin() + i * count, operands[k].values.begin() + (i + 1) * count);
      }
      expected += Run(one, parts);
    }
    EXPECT_TRUE(Run(all, operands) == expected) << "transpose_b " << transpose_b;
  }
}

TEST_P(MatmulRows, DoNotDependOnTheirNumber) {
  constexpr int64_t kMost = 300;
  const std::vector<std::pair<int64_t, int64_t>> sizes = {{784, 512}, {512, 512}, {512, 10},  {10, 512},  {1, 64},
                                                          {64, 1},    {17, 33},   {1023, 17}, {2048, 40}, {100, 1000}};
  for (const auto& [k, n] : sizes) {
    for (const bool transpose_b : {false, true}) {
      const std::vector<RefTensor> whole = MakeOperands(Spec(GetParam(), kMost, k, n, transpose_b), 3);
      const std::string all_rows = Run(Spec(GetParam(), kMost, k, n, transpose_b), whole);
      std::vector<int64_t> rows = {64, 100, 128, 129, 256};
      for (int64_t m = 1; m <= 40; ++m) rows.push_back(m);
      for (const int64_t m : rows) {
        std::vector<RefTensor> part = whole;
        part[0] = {F32({m, k}), {whole[0].values.begin(), whole[0].values.begin() + m * k}};
        part[2] = {F32({m, n}), std::vector<double>(static_cast<size_t>(m * n))};
        const std::string bits = Run(Spec(GetParam(), m, k, n, transpose_b), part);
        ASSERT_TRUE(bits == all_rows.substr(0, bits.size()))
            << "m=" << m << " k=" << k << " n=" << n << " transpose_b=" << transpose_b;
      }
    }
  }
}

TEST_P(MatmulRows, DoNotDependOnAddresses) {
  for (const bool transpose_b : {false, true}) {
    const KernelSpec spec = Spec(GetParam(), 8, 784, 512, transpose_b);
    const std::vector<RefTensor> operands = MakeOperands(spec, 5);
    const std::string aligned = Run(spec, operands);
    for (int64_t offset = 1; offset < 16; ++offset) ASSERT_TRUE(Run(spec, operands, offset) == aligned) << offset;
  }
}

// The ops of `epilogue` one by one on the plain product.
class UnfusedEpilogue {
 public:
  UnfusedEpilogue(const KernelRegistry& registry, const KernelSpec& fused, const std::vector<RefTensor>& operands)
      : registry_(registry), memory_(operands), result_(fused.outputs[0]) {
    KernelSpec product = fused;
    product.attributes.erase("epilogue");
    product.inputs.resize(2);
    Run(product, {0, 1, operands.size() - 1});
  }

  void Add(size_t operand, const TensorType& type) {
    const size_t result = memory_.addresses().size() - 1;
    Run({"add", {result_, type}, {result_}}, {result, operand, result});
  }
  void Apply(const std::string& op, const AttributeMap& attributes) {
    const size_t result = memory_.addresses().size() - 1;
    Run({op, {result_}, {result_}, attributes}, {result, result});
  }
  std::string Bits() const { return memory_.Bits(memory_.addresses().size() - 1); }

 private:
  void Run(const KernelSpec& spec, const std::vector<size_t>& places) {
    std::vector<void*> addresses;
    for (size_t place : places) addresses.push_back(memory_.addresses()[place]);
    const std::unique_ptr<Kernel> kernel = MakeKernel(registry_, spec);
    Buffer scratch(kernel->scratch_bytes());
    const absl::Status status = kernel->Run(addresses, scratch.data());
    EXPECT_TRUE(status.ok()) << status;
  }

  const KernelRegistry& registry_;
  OperandMemory memory_;
  TensorType result_;
};

TEST_F(MatmulBits, EpilogueEqualsItsOpsOneByOne) {
  const ScopedComputeThreads one_thread(1);
  struct Activation {
    const char* step;
    const char* op;
    AttributeMap attributes;
  };
  const std::vector<Activation> activations = {{"relu", "relu", {}},
                                               {"gelu_tanh", "gelu", {{"approximate", true}}},
                                               {"gelu_erf", "gelu", {{"approximate", false}}},
                                               {"tanh", "tanh", {}},
                                               {"sigmoid", "sigmoid", {}}};
  for (const char* kernel : {"brg", "rows", ""}) {
    for (const auto& [m, k, n] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
             {8, 784, 512}, {32, 512, 10}, {1, 17, 33}, {5, 64, 1}, {7, 1, 19}}) {
      for (const Activation& activation : activations) {
        // bias, activation, residual; then the activation last, after both additions.
        for (const bool last : {false, true}) {
          const std::string epilogue = last ? std::string("bias+residual+") + activation.step
                                            : std::string("bias+") + activation.step + "+residual";
          SCOPED_TRACE(epilogue + " of " + ShapeToString({m, k, n}));
          KernelSpec spec = Spec(kernel, m, k, n, false, epilogue);
          spec.inputs.push_back(F32({n}));
          spec.inputs.push_back(F32({m, n}));
          std::vector<RefTensor> operands = MakeOperands(spec, 9);
          for (double& weight : operands[1].values) weight = static_cast<float>((weight - 0.5) / 16);
          UnfusedEpilogue unfused(registry_, spec, operands);
          unfused.Add(2, spec.inputs[2]);
          if (last) unfused.Add(3, spec.inputs[3]);
          unfused.Apply(activation.op, activation.attributes);
          if (!last) unfused.Add(3, spec.inputs[3]);
          ASSERT_TRUE(Run(spec, operands) == unfused.Bits());
        }
      }
    }
  }
}

TEST_P(MatmulRows, AreWhatIsUsedForEverySize) {
  for (const auto& [m, k, n] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {8, 784, 512}, {8, 512, 512}, {32, 512, 10}, {1, 1, 1}, {1, 17, 33}, {5, 64, 1}, {1, 784, 512}}) {
    for (const bool transpose_b : {false, true}) {
      const std::string name = MakeKernel(registry_, Spec(GetParam(), m, k, n, transpose_b))->implementation();
      EXPECT_EQ(name.rfind(GetParam(), 0), 0u) << name << " for " << ShapeToString({m, k, n});
    }
  }
}

// The order that row_product.h documents, with fused multiply-adds one by one.
TEST_F(MatmulBits, RowsAddInTheDocumentedOrder) {
  if (!Has("rows")) GTEST_SKIP() << "this machine has no rows";
  for (const auto& [m, k, n] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {8, 784, 50}, {1, 1, 1}, {11, 17, 33}, {5, 64, 16}, {23, 15, 49}}) {
    for (const bool transpose_b : {false, true}) {
      const KernelSpec spec = Spec("rows", m, k, n, transpose_b);
      const std::vector<RefTensor> operands = MakeOperands(spec, 6);
      const auto a = [&, k = k](int64_t i, int64_t p) { return static_cast<float>(operands[0].values[i * k + p]); };
      const auto b = [&, k = k, n = n](int64_t p, int64_t j) {
        return static_cast<float>(operands[1].values[transpose_b ? j * k + p : p * n + j]);
      };
      std::vector<float> expected;
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          float lanes[16] = {};
          for (int64_t p = 0; p < k; ++p) {
            float& lane = lanes[transpose_b ? p % 16 : 0];
            lane = std::fma(a(i, p), b(p, j), lane);
          }
          for (int half = 8; half > 0 && transpose_b; half /= 2) {
            for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
          }
          expected.push_back(lanes[0]);
        }
      }
      const std::string bits(reinterpret_cast<const char*>(expected.data()), expected.size() * sizeof(float));
      ASSERT_TRUE(Run(spec, operands) == bits) << ShapeToString({m, k, n}) << " transpose_b=" << transpose_b;
    }
  }
}

TEST_F(MatmulBits, MakingAKernelLeavesTheThreadsSettingAlone) {
  const ScopedComputeThreads one_thread(1);
  KernelSpec spec = Spec("brg", 64, 512, 512, false);
  spec.threads = 2;
  const std::unique_ptr<Kernel> kernel = MakeKernel(registry_, spec);
  EXPECT_EQ(omp_get_max_threads(), 1);
  const std::vector<RefTensor> operands = MakeOperands(spec, 4);
  const std::string bits = Run(spec, operands);  // under two threads
  EXPECT_EQ(omp_get_max_threads(), 1);
  EXPECT_TRUE(Run(spec, operands) == bits);
}

// The choice is by name: oneDNN's own list of implementations grows once primitives are in its cache.
TEST_F(MatmulBits, ChoiceDoesNotDependOnWhatWasMadeBefore) {
  KernelSpec first_choice = Spec("brg", 8, 96, 80, false);
  first_choice.attributes.erase("kernel");
  const std::string brg = MakeKernel(registry_, Spec("brg", 8, 96, 80, false))->implementation();
  const std::string plain = MakeKernel(registry_, first_choice)->implementation();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(MakeKernel(registry_, Spec("brg", 8, 96, 80, false))->implementation(), brg);
    EXPECT_EQ(MakeKernel(registry_, first_choice)->implementation(), plain);
  }
}

}  // namespace
}  // namespace pipeloom
