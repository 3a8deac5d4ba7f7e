// What the print kernel writes to standard output.

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "tests/kernels/run_kernel.h"

namespace pipeloom {
namespace {

std::string Printed(const RefTensor& x, const std::string& text) {
  KernelRegistry registry;
  RegisterCpuKernels(registry);
  OperandMemory memory({x});
  testing::internal::CaptureStdout();
  const absl::Status status = RunKernel(registry, {"print", {x.type}, {}, {{"text", text}}}, memory);
  const std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(status.ok()) << status;
  return printed;
}

TEST(Print, TextThenTensor) {
  EXPECT_EQ(Printed({{DType::kFloat32, {2, 2}}, {1, -0.5, 0, 123456}}, "out is:"),
            "out is:\n"
            "Tensor(shape=[2, 2], dtype=Float32, value=\n"
            "[[ 1.00000000e+00 -5.00000000e-01]\n"
            " [ 0.00000000e+00  1.23456000e+05]])\n");
}

TEST(Print, EachTypeAndNoText) {
  EXPECT_EQ(Printed({{DType::kInt32, {3}}, {1, -2, 3}}, ""), "Tensor(shape=[3], dtype=Int32, value=\n[1 -2 3])\n");
  EXPECT_EQ(Printed({{DType::kInt64, {}}, {1099511627776.0}}, "n"),
            "n\nTensor(shape=[], dtype=Int64, value=\n1099511627776)\n");
  EXPECT_EQ(Printed({{DType::kBool, {2}}, {1, 0}}, ""), "Tensor(shape=[2], dtype=Bool, value=\n[True False])\n");
  EXPECT_EQ(Printed({{DType::kInt32, {0}}, {}}, ""), "Tensor(shape=[0], dtype=Int32, value=\n[])\n");
}

TEST(Print, LongAxesAreShortened) {
  std::vector<double> values(8 * 9);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  EXPECT_EQ(Printed({{DType::kInt32, {8, 9}}, values}, "x:"),
            "x:\n"
            "Tensor(shape=[8, 9], dtype=Int32, value=\n"
            "[[0 1 2 ... 6 7 8]\n"
            " [9 10 11 ... 15 16 17]\n"
            " [18 19 20 ... 24 25 26]\n"
            " ...\n"
            " [45 46 47 ... 51 52 53]\n"
            " [54 55 56 ... 60 61 62]\n"
            " [63 64 65 ... 69 70 71]])\n");
  EXPECT_EQ(Printed({{DType::kInt32, {2, 1, 2}}, {1, 2, 3, 4}}, ""),
            "Tensor(shape=[2, 1, 2], dtype=Int32, value=\n"
            "[[[1 2]]\n"
            " [[3 4]]])\n");
}

}  // namespace
}  // namespace pipeloom
