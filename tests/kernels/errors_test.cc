// What kernels refuse, and how they say it; and values that are no numbers.

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "tests/kernels/run_kernel.h"

namespace pipeloom {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TensorType F32(const Shape& shape) { return {DType::kFloat32, shape}; }
TensorType I32(const Shape& shape) { return {DType::kInt32, shape}; }

class KernelErrors : public testing::Test {
 protected:
  KernelErrors() { RegisterCpuKernels(registry_); }

  KernelRegistry registry_;
};

TEST_F(KernelErrors, LabelOutOfRangeNamesLabelPositionAndClasses) {
  const KernelSpec loss{"softmax_cross_entropy", {F32({3, 10}), I32({3})}, {F32({})}, {{"ignore_index", int64_t{-1}}}};
  const KernelSpec grad{
      "softmax_cross_entropy_grad", {F32({}), F32({3, 10}), I32({3})}, {F32({3, 10})}, loss.attributes};
  for (const double label : {10.0, -2.0, 2147483647.0}) {
    const RefTensor labels{I32({3}), {-1, 9, label}};
    const RefTensor logits{F32({3, 10}), std::vector<double>(30, 1)};
    OperandMemory loss_memory({logits, labels, {F32({}), {0}}});
    OperandMemory grad_memory({{F32({}), {1}}, logits, labels, logits});
    for (const absl::Status& status :
         {RunKernel(registry_, loss, loss_memory), RunKernel(registry_, grad, grad_memory)}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr("label " + std::to_string(static_cast<int>(label)) + " at position 2"),
                        HasSubstr("[0, 10)"), HasSubstr("-1")));
    }
  }
}

TEST_F(KernelErrors, IdOutOfRangeNamesIdPositionAndRows) {
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    for (const double id : {7.0, -1.0, dtype == DType::kInt64 ? 4294967296.0 : 2147483647.0}) {
      const RefTensor ids{{dtype, {3}}, {0, 6, id}};
      const RefTensor table{F32({7, 2}), std::vector<double>(14)};
      const RefTensor rows{F32({3, 2}), std::vector<double>(6)};
      OperandMemory forward({table, ids, rows});
      OperandMemory backward({rows, ids, table});
      const KernelSpec gather{"gather", {table.type, ids.type}, {rows.type}};
      const KernelSpec grad{"gather_grad", {rows.type, ids.type}, {table.type}, {{"rows", int64_t{7}}}};
      for (const absl::Status& status : {RunKernel(registry_, gather, forward), RunKernel(registry_, grad, backward)}) {
        EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
        EXPECT_THAT(
            std::string(status.message()),
            AllOf(HasSubstr("id " + std::to_string(static_cast<int64_t>(id)) + " at position 2"), HasSubstr("[0, 7)")));
      }
    }
  }
}

TEST_F(KernelErrors, IdOutOfRangeAlongAnAxis) {
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    for (const int64_t id : {7, -1}) {
      const TensorType type{dtype, {3, 1}};
      const RefTensor ids{type, {0, 6, static_cast<double>(id)}};
      const RefTensor whole{F32({3, 7}), std::vector<double>(21)};
      const RefTensor picked{F32({3, 1}), std::vector<double>(3)};
      OperandMemory forward({whole, ids, picked});
      OperandMemory backward({picked, ids, whole});
      const AttributeMap axis = {{"axis", int64_t{1}}};
      const AttributeMap with_size = {{"axis", int64_t{1}}, {"size", int64_t{7}}};
      const KernelSpec gather{"gather_along_axis", {whole.type, type}, {picked.type}, axis};
      const KernelSpec scatter{"scatter_add_along_axis", {picked.type, type}, {whole.type}, with_size};
      for (const absl::Status& status :
           {RunKernel(registry_, gather, forward), RunKernel(registry_, scatter, backward)}) {
        EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
        EXPECT_THAT(std::string(status.message()),
                    AllOf(HasSubstr("id " + std::to_string(id) + " at position 2"), HasSubstr("[0, 7)")));
      }
    }
  }
}

// A diverged run must be seen in its loss: what compares keeps NaN, wherever it stands.
TEST_F(KernelErrors, MaximaKeepNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const TensorType three = F32({3});
  for (const char* op : {"maximum", "minimum"}) {
    OperandMemory memory({{three, {nan, 1, 2}}, {three, {1, nan, 1}}, {three, {0, 0, 0}}});
    ASSERT_TRUE(RunKernel(registry_, {op, {three, three}, {three}}, memory).ok());
    EXPECT_TRUE(std::isnan(memory.Values(2)[0]) && std::isnan(memory.Values(2)[1])) << op;
  }
  for (const int64_t axis : {0, 1}) {
    for (size_t place = 0; place < 9; ++place) {
      std::vector<double> values = {1, 2, 3, 4, 5, 6, 7, 8, 9};
      values[place] = nan;
      OperandMemory memory({{F32({3, 3}), values}, {three, {0, 0, 0}}});
      const AttributeMap axes = {{"axes", std::vector<int64_t>{axis}}};
      ASSERT_TRUE(RunKernel(registry_, {"reduce_max", {F32({3, 3})}, {three}, axes}, memory).ok());
      EXPECT_TRUE(std::isnan(memory.Values(1)[axis == 0 ? place % 3 : place / 3])) << axis << " " << place;
    }
  }
}

TEST_F(KernelErrors, AllLabelsIgnoredIsALossOfZero) {
  const KernelSpec loss{"softmax_cross_entropy", {F32({2, 3}), I32({2})}, {F32({})}};
  OperandMemory memory({{F32({2, 3}), {1, 2, 3, 4, 5, 6}}, {I32({2}), {-100, -100}}, {F32({}), {5}}});
  ASSERT_TRUE(RunKernel(registry_, loss, memory).ok());
  EXPECT_EQ(memory.Values(2)[0], 0);
}

TEST_F(KernelErrors, LargeLogitsDoNotOverflow) {
  const KernelSpec loss{"softmax_cross_entropy", {F32({1, 2}), I32({1})}, {F32({})}};
  OperandMemory memory({{F32({1, 2}), {1000, -1000}}, {I32({1}), {1}}, {F32({}), {0}}});
  ASSERT_TRUE(RunKernel(registry_, loss, memory).ok());
  EXPECT_EQ(memory.Values(2)[0], 2000);
}

TEST_F(KernelErrors, UnknownEpilogueStepIsNamedWithTheChoices) {
  const KernelSpec spec{"matmul", {F32({2, 3}), F32({3, 4})}, {F32({2, 4})}, {{"epilogue", std::string("swish")}}};
  const absl::Status status = registry_.Create(kCpuDevice, spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("'swish'"), HasSubstr("bias, residual, relu, gelu_tanh")));
}

TEST_F(KernelErrors, UnknownKernelNamesOpDeviceAndDtype) {
  const absl::Status status = registry_.Create(kCpuDevice, {"div", {I32({2}), I32({2})}, {I32({2})}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("div"), HasSubstr("i32"), HasSubstr("f32 on cpu")));
}

TEST_F(KernelErrors, LargeValuesDoNotOverflowASoftmax) {
  const TensorType t = F32({2, 3});
  const std::vector<double> x = {1000, -1000, 1000, 3e38, -3e38, -3e38};
  OperandMemory memory({{t, x}, {t, x}});
  ASSERT_TRUE(RunKernel(registry_, {"softmax", {t}, {t}}, memory).ok());
  EXPECT_EQ(memory.Values(1), (std::vector<double>{0.5, 0, 0.5, 1, 0, 0}));
  ASSERT_TRUE(RunKernel(registry_, {"log_softmax", {t}, {t}}, memory).ok());
  const std::vector<double> logs = memory.Values(1);
  EXPECT_NEAR(logs[0], -std::log(2), 1e-6);
  EXPECT_NEAR(logs[1], -2000 - std::log(2), 1e-3);
  EXPECT_EQ(logs[3], 0);
}

TEST_F(KernelErrors, LayerNormOfRowsFarFromZero) {
  const TensorType x = F32({2, 2});
  const TensorType along = F32({2});
  OperandMemory memory({{x, {1e6, 1e6 + 2, 7, 7}}, {along, {3, 3}}, {along, {0.5, 0.25}}, {x, {0, 0, 0, 0}}});
  ASSERT_TRUE(RunKernel(registry_, {"layer_norm", {x, along, along}, {x}}, memory).ok());
  const std::vector<double> y = memory.Values(3);
  EXPECT_NEAR(y[0], -3 + 0.5, 1e-4);
  EXPECT_NEAR(y[1], 3 + 0.25, 1e-4);
  EXPECT_EQ(y[2], 0.5);  // nothing but beta is left of equal elements
  EXPECT_EQ(y[3], 0.25);
}

// A run that diverges must show it in its loss, hence no kernel may lose a NaN on the way there.
TEST_F(KernelErrors, NanReachesTheLoss) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* epilogue : {"relu", "gelu_tanh", "gelu_erf", "tanh", "sigmoid"}) {
    const KernelSpec spec{"matmul", {F32({1, 2}), F32({2, 3})}, {F32({1, 3})}, {{"epilogue", std::string(epilogue)}}};
    OperandMemory memory({{F32({1, 2}), {nan, 1}}, {F32({2, 3}), std::vector<double>(6, 1)}, {F32({1, 3}), {0, 0, 0}}});
    ASSERT_TRUE(RunKernel(registry_, spec, memory).ok());
    EXPECT_TRUE(std::isnan(memory.Values(2)[1])) << epilogue;
  }
  for (const char* op : {"relu", "gelu", "tanh", "sigmoid", "neg", "reduce_sum"}) {
    const Shape out = op == std::string("reduce_sum") ? Shape{} : Shape{2};
    OperandMemory memory({{F32({2}), {1, nan}}, {F32(out), std::vector<double>(NumElements(out))}});
    ASSERT_TRUE(RunKernel(registry_, {op, {F32({2})}, {F32(out)}}, memory).ok());
    EXPECT_TRUE(std::isnan(memory.Values(1).back())) << op;
  }
  for (const char* op : {"softmax", "log_softmax"}) {
    for (const size_t place : {0, 1, 16}) {
      RefTensor x{F32({17}), std::vector<double>(17, 1)};
      x.values[place] = nan;
      OperandMemory memory({x, x});
      ASSERT_TRUE(RunKernel(registry_, {op, {x.type}, {x.type}}, memory).ok());
      for (const double y : memory.Values(1)) EXPECT_TRUE(std::isnan(y)) << op << " with a NaN at " << place;
    }
  }
  for (const char* op : {"softmax_grad", "log_softmax_grad"}) {
    for (const size_t of : {0, 1}) {
      std::vector<RefTensor> operands(3, RefTensor{F32({2}), {1, 2}});
      operands[of].values[1] = nan;
      OperandMemory memory(operands);
      ASSERT_TRUE(RunKernel(registry_, {op, {F32({2}), F32({2})}, {F32({2})}}, memory).ok());
      EXPECT_TRUE(std::isnan(memory.Values(2)[1])) << op << " with a NaN in operand " << of;
    }
  }
  const TensorType pair = F32({2});
  for (const char* op : {"layer_norm", "layer_norm_grad_x"}) {
    for (const size_t of : {0, 1, 2}) {
      std::vector<RefTensor> operands(4, RefTensor{pair, {1, 2}});
      operands[of].values[1] = nan;
      OperandMemory memory(operands);
      ASSERT_TRUE(RunKernel(registry_, {op, {pair, pair, pair}, {pair}}, memory).ok());
      EXPECT_TRUE(std::isnan(memory.Values(3)[1])) << op << " with a NaN in operand " << of;
    }
  }
  for (const size_t of : {0, 1}) {
    std::vector<RefTensor> operands(3, RefTensor{pair, {1, 2}});
    operands[of].values[1] = nan;
    OperandMemory memory(operands);
    ASSERT_TRUE(RunKernel(registry_, {"layer_norm_grad_gamma", {pair, pair}, {pair}}, memory).ok());
    EXPECT_TRUE(std::isnan(memory.Values(2)[1])) << "layer_norm_grad_gamma with a NaN in operand " << of;
  }
  for (const double first : {nan, 1.0}) {
    const KernelSpec loss{"softmax_cross_entropy", {F32({1, 3}), I32({1})}, {F32({})}};
    OperandMemory memory({{F32({1, 3}), {first, first == 1 ? nan : 1, 2}}, {I32({1}), {2}}, {F32({}), {0}}});
    ASSERT_TRUE(RunKernel(registry_, loss, memory).ok());
    EXPECT_TRUE(std::isnan(memory.Values(2)[0]));
  }
}

TEST_F(KernelErrors, IntegersWrapAround) {
  OperandMemory memory({{I32({2}), {2147483647, -2147483648.0}}, {I32({2}), {1, -1}}, {I32({2}), {0, 0}}});
  ASSERT_TRUE(RunKernel(registry_, {"add", {I32({2}), I32({2})}, {I32({2})}}, memory).ok());
  EXPECT_EQ(memory.Values(2), (std::vector<double>{-2147483648.0, 2147483647}));
}

}  // namespace
}  // namespace pipeloom
