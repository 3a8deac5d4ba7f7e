// What the equality of pipelined and unpipelined training rests on (docs/design.md): a product's rows do not depend on
// how many there are nor on addresses, and an epilogue gives the bits of its ops run one by one.

#include <cstring>
#include <string>
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
  MatmulBits() {
    RegisterCpuKernels(registry_);
    const KernelSpec probe = Spec(8, 64, 64, false);
    has_brg_ = MakeKernel(registry_, probe)->implementation().rfind("brg", 0) == 0;
  }

  static KernelSpec Spec(int64_t m, int64_t k, int64_t n, bool transpose_b, const std::string& epilogue = "") {
    AttributeMap attributes = {{"kernel", std::string("brg")}, {"transpose_b", transpose_b}};
    if (!epilogue.empty()) attributes["epilogue"] = epilogue;
    return {"matmul", {F32({m, k}), F32(transpose_b ? Shape{n, k} : Shape{k, n})}, {F32({m, n})}, attributes};
  }

  // Bits of the result after a run on `operands`, each `offset` elements past a 64-byte boundary.
  std::string Run(const KernelSpec& spec, const std::vector<RefTensor>& operands, int64_t offset = 0) {
    OperandMemory memory(operands, offset);
    const absl::Status status = RunKernel(registry_, spec, memory);
    EXPECT_TRUE(status.ok()) << status;
    return memory.Bits(operands.size() - 1);
  }

  KernelRegistry registry_;
  bool has_brg_ = false;
};

TEST_F(MatmulBits, RowsDoNotDependOnTheirNumber) {
  if (!has_brg_) GTEST_SKIP() << "oneDNN has no brgemm for this machine";
  constexpr int64_t kMost = 300;
  const std::vector<std::pair<int64_t, int64_t>> sizes = {{784, 512}, {512, 512}, {512, 10},  {10, 512},  {1, 64},
                                                          {64, 1},    {17, 33},   {1023, 17}, {2048, 40}, {100, 1000}};
  for (const auto& [k, n] : sizes) {
    for (const bool transpose_b : {false, true}) {
      const std::vector<RefTensor> whole = MakeOperands(Spec(kMost, k, n, transpose_b), 3);
      const std::string all_rows = Run(Spec(kMost, k, n, transpose_b), whole);
      std::vector<int64_t> rows = {64, 100, 128, 129, 256};
      for (int64_t m = 1; m <= 40; ++m) rows.push_back(m);
      for (const int64_t m : rows) {
        std::vector<RefTensor> part = whole;
        part[0] = {F32({m, k}), {whole[0].values.begin(), whole[0].values.begin() + m * k}};
        part[2] = {F32({m, n}), std::vector<double>(static_cast<size_t>(m * n))};
        const std::string bits = Run(Spec(m, k, n, transpose_b), part);
        ASSERT_TRUE(bits == all_rows.substr(0, bits.size()))
            << "m=" << m << " k=" << k << " n=" << n << " transpose_b=" << transpose_b;
      }
    }
  }
}

TEST_F(MatmulBits, DoNotDependOnAddresses) {
  for (const bool transpose_b : {false, true}) {
    const KernelSpec spec = Spec(8, 784, 512, transpose_b);
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
  SetComputeThreads(1);
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
  for (const char* kernel : {"brg", ""}) {
    for (const auto& [m, k, n] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
             {8, 784, 512}, {32, 512, 10}, {1, 17, 33}, {5, 64, 1}, {7, 1, 19}}) {
      for (const Activation& activation : activations) {
        // bias, activation, residual; then the activation last, after both additions.
        for (const bool last : {false, true}) {
          const std::string epilogue = last ? std::string("bias+residual+") + activation.step
                                            : std::string("bias+") + activation.step + "+residual";
          SCOPED_TRACE(epilogue + " of " + ShapeToString({m, k, n}));
          KernelSpec spec = Spec(m, k, n, false, epilogue);
          spec.attributes["kernel"] = std::string(kernel);
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

TEST_F(MatmulBits, BrgIsWhatBrgAsksFor) {
  if (!has_brg_) GTEST_SKIP() << "oneDNN has no brgemm for this machine";
  for (const auto& [m, k, n] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {8, 784, 512}, {8, 512, 512}, {32, 512, 10}, {1, 1, 1}, {1, 17, 33}, {5, 64, 1}, {1, 784, 512}}) {
    for (const bool transpose_b : {false, true}) {
      const std::string name = MakeKernel(registry_, Spec(m, k, n, transpose_b))->implementation();
      EXPECT_EQ(name.substr(0, 3), "brg") << name << " for " << ShapeToString({m, k, n});
    }
  }
}

// The choice is by name: oneDNN's own list of implementations grows once primitives are in its cache.
TEST_F(MatmulBits, ChoiceDoesNotDependOnWhatWasMadeBefore) {
  KernelSpec first_choice = Spec(8, 96, 80, false);
  first_choice.attributes.erase("kernel");
  const std::string brg = MakeKernel(registry_, Spec(8, 96, 80, false))->implementation();
  const std::string plain = MakeKernel(registry_, first_choice)->implementation();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(MakeKernel(registry_, Spec(8, 96, 80, false))->implementation(), brg);
    EXPECT_EQ(MakeKernel(registry_, first_choice)->implementation(), plain);
  }
}

}  // namespace
}  // namespace pipeloom
