#include "passes/ir/op_table.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/testlib/reference_ops.h"

namespace pipeloom {
namespace {

using Ints = std::vector<int64_t>;
using Types = std::vector<TensorType>;

TensorType F32(const Shape& shape) { return {DType::kFloat32, shape}; }
TensorType I32(const Shape& shape) { return {DType::kInt32, shape}; }

struct GoodCase {
  std::string op;
  Types operands;
  AttributeMap attributes;
  Types results;
};

std::vector<GoodCase> GoodCases() {
  const TensorType x = F32({8, 4});
  const TensorType scalar = F32({});
  const Types movable = {x, I32({8, 4}), {DType::kInt64, {8, 4}}, {DType::kBool, {8, 4}}};
  const std::string all_steps = "bias+residual+relu+gelu_tanh+gelu_erf+tanh+sigmoid";
  std::vector<GoodCase> cases = {
      {"matmul", {F32({8, 3}), F32({3, 4})}, {}, {x}},
      {"matmul", {F32({3, 8}), F32({4, 3})}, {{"transpose_a", true}, {"transpose_b", true}}, {x}},
      {"matmul", {F32({8, 3}), F32({3, 4}), F32({4}), x}, {{"epilogue", all_steps}}, {x}},
      {"matmul", {F32({8, 3}), F32({3, 4}), x}, {{"epilogue", std::string("residual+relu")}}, {x}},
      {"matmul", {F32({8, 3}), F32({3, 4})}, {{"kernel", std::string("brg")}, {"group", int64_t{4}}}, {x}},
      {"batch_matmul", {F32({2, 5, 8, 3}), F32({2, 5, 3, 4})}, {}, {F32({2, 5, 8, 4})}},
      {"batch_matmul",
       {F32({5, 3, 8}), F32({5, 4, 3})},
       {{"kernel", std::string("rows")}, {"transpose_a", true}, {"transpose_b", true}},
       {F32({5, 8, 4})}},
      {"add", {I32({8, 1}), I32({4})}, {}, {I32({8, 4})}},
      {"sub", {F32({8, 1}), F32({1, 4})}, {}, {x}},
      {"mul", {F32({2, 8, 4}), F32({8, 1})}, {}, {F32({2, 8, 4})}},
      {"div", {scalar, x}, {}, {x}},
      {"add", {F32({1}), F32({0})}, {}, {F32({0})}},
      {"gelu", {x}, {{"approximate", false}}, {x}},
      {"gelu_grad", {x, x}, {{"approximate", false}}, {x}},
      {"softmax_cross_entropy", {x, I32({8})}, {{"reduction", std::string("sum")}}, {scalar}},
      {"softmax_cross_entropy_grad", {scalar, x, I32({8})}, {{"ignore_index", int64_t{0}}}, {x}},
      {"mse", {x, x}, {}, {scalar}},
      {"mse_grad", {scalar, x, x}, {}, {x}},
      {"reduce_sum", {x}, {}, {scalar}},
      {"reduce_sum", {x}, {{"axes", Ints{0}}, {"group", int64_t{2}}}, {F32({4})}},
      {"reduce_mean", {x}, {{"axes", Ints{0, 1}}, {"keep_dims", true}}, {F32({1, 1})}},
      {"layer_norm", {F32({2, 8, 4}), F32({4}), F32({4})}, {{"eps", 1e-6}}, {F32({2, 8, 4})}},
      {"layer_norm_grad_x", {x, x, F32({4})}, {}, {x}},
      {"layer_norm_grad_gamma", {x, x}, {{"eps", 1e-6}, {"group", int64_t{2}}}, {F32({4})}},
      {"layer_norm_grad_gamma", {F32({2, 8, 4}), F32({2, 8, 4})}, {}, {F32({4})}},
      {"gather", {F32({9, 4}), I32({8})}, {}, {x}},
      {"gather", {{DType::kBool, {9}}, {DType::kInt64, {8, 4}}}, {}, {{DType::kBool, {8, 4}}}},
      {"gather_grad", {x, I32({8})}, {{"rows", int64_t{9}}, {"group", int64_t{2}}}, {F32({9, 4})}},
      {"gather_grad", {x, {DType::kInt64, {8, 4}}}, {{"rows", int64_t{9}}}, {F32({9})}},
      {"gather_along_axis", {F32({9, 4}), I32({8, 4})}, {{"axis", int64_t{0}}}, {x}},
      {"gather_along_axis", {I32({8, 9}), {DType::kInt64, {8, 4}}}, {{"axis", int64_t{1}}}, {I32({8, 4})}},
      {"scatter_add_along_axis", {F32({8, 1}), I32({8, 1})}, {{"axis", int64_t{1}}, {"size", int64_t{4}}}, {x}},
      {"pow", {x, scalar}, {}, {x}},
      {"maximum", {I32({8, 1}), I32({4})}, {}, {I32({8, 4})}},
      {"minimum", {x, F32({1, 4})}, {}, {x}},
      {"reduce_max", {x}, {{"axes", Ints{1}}, {"keep_dims", true}}, {F32({8, 1})}},
      {"apply_sgd", {x, x, x, x, scalar, F32({1})}, {{"nesterov", true}}, {}},
      {"apply_momentum", {x, x, x, scalar, scalar}, {}, {}},
      {"apply_adam", {x, x, x, x, scalar, scalar, scalar, scalar, scalar, scalar}, {{"nesterov", true}}, {}},
      {"apply_adamw", {x, x, x, x, F32({1}), scalar, scalar, scalar, scalar}, {}, {}},
      {"assign", {I32({1}), I32({1})}, {}, {}},
      {"assign_add", {I32({1}), I32({1})}, {}, {}},
      {"equal", {F32({8, 1}), F32({4})}, {}, {{DType::kBool, {8, 4}}}},
      {"not_equal", {I32({8}), I32({})}, {}, {{DType::kBool, {8}}}},
      {"less", {x, x}, {}, {{DType::kBool, {8, 4}}}},
      {"less_equal", {x, x}, {}, {{DType::kBool, {8, 4}}}},
      {"greater", {x, x}, {}, {{DType::kBool, {8, 4}}}},
      {"greater_equal", {x, x}, {}, {{DType::kBool, {8, 4}}}},
      {"logical_and", {{DType::kBool, {8, 1}}, {DType::kBool, {4}}}, {}, {{DType::kBool, {8, 4}}}},
      {"logical_or", {{DType::kBool, {8}}, {DType::kBool, {8}}}, {}, {{DType::kBool, {8}}}},
      {"logical_not", {{DType::kBool, {8}}}, {}, {{DType::kBool, {8}}}},
      {"where", {{DType::kBool, {8, 1}}, F32({4}), scalar}, {}, {x}},
      {"cast", {x}, {{"to", std::string("i64")}}, {{DType::kInt64, {8, 4}}}},
      {"dropout", {x, {DType::kInt64, {}}, {DType::kInt64, {}}}, {{"p", 0.5}, {"seed", int64_t{1}}}, {x}},
      {"micro_batch_index", {}, {}, {{DType::kInt64, {}}}},
      {"softmax_cross_entropy", {x, {DType::kInt64, {8}}, scalar}, {}, {scalar}},
      {"labels_per_micro_batch", {{DType::kInt64, {8, 4}}}, {{"count", int64_t{2}}}, {scalar}},
      {"print", {x}, {{"text", std::string("x is:")}}, {}},
      {"micro_batch_slice", {F32({32, 4})}, {{"count", int64_t{4}}}, {x}},
      {"micro_batch_slice", {F32({8, 8})}, {{"axis", int64_t{1}}, {"count", int64_t{2}}}, {x}},
      {"micro_batch_merge", {scalar}, {{"reduce", std::string("sum")}, {"count", int64_t{4}}}, {scalar}},
      {"micro_batch_merge", {x}, {{"reduce", std::string("concat")}, {"count", int64_t{4}}}, {F32({32, 4})}},
      {"grad_accumulate", {x}, {{"count", int64_t{4}}, {"group", int64_t{2}}}, {x}},
      {"send", {x}, {{"channel", int64_t{3}}, {"to", int64_t{1}}, {"slots", int64_t{2}}}, {}},
      {"receive", {}, {{"channel", int64_t{3}}, {"from", int64_t{0}}}, {}},
      {"call", {scalar}, {{"block", std::string("layer")}}, {}},
      {"step_output", {scalar}, {{"index", int64_t{0}}}, {}},
      {"sgd", {x, x}, {{"lr", 0.1}}, {}},
      {"sgd", {x, x, x}, {{"lr", 0.1}, {"momentum", 0.9}, {"nesterov", true}}, {}},
      {"adam", {x, x, x, x, scalar}, {{"lr", 0.1}, {"weight_decay", 0.01}}, {}},
      {"adamw", {x, x, x, x, scalar}, {{"lr", 0.1}, {"weight_decay", 0.01}}, {}},
  };
  for (const char* op : {"neg", "relu", "tanh", "sigmoid", "exp", "log", "sqrt", "rsqrt", "square", "reciprocal", "abs",
                         "erf", "sin", "cos", "sign", "floor"})
    cases.push_back({op, {x}, {}, {x}});
  for (const char* op : {"relu_grad", "tanh_grad", "sigmoid_grad"}) cases.push_back({op, {x, x}, {}, {x}});
  for (const char* op : {"softmax", "log_softmax"}) cases.push_back({op, {x}, {{"axis", int64_t{-1}}}, {x}});
  for (const char* op : {"softmax_grad", "log_softmax_grad"})
    cases.push_back({op, {x, x}, {{"axis", int64_t{1}}}, {x}});
  for (const TensorType& type : movable) {
    const DType dtype = type.dtype;
    cases.push_back({"broadcast_to", {type}, {{"shape", Ints{2, 8, 4}}}, {{dtype, {2, 8, 4}}}});
    cases.push_back({"reshape", {type}, {{"shape", Ints{32}}}, {{dtype, {32}}}});
    cases.push_back({"transpose", {type}, {{"perm", Ints{1, 0}}}, {{dtype, {4, 8}}}});
    cases.push_back({"slice", {type}, {{"begin", Ints{6, 0}}, {"size", Ints{2, 4}}}, {{dtype, {2, 4}}}});
    cases.push_back({"pad", {type}, {{"before", Ints{1, 0}}, {"after", Ints{0, 2}}}, {{dtype, {9, 6}}}});
    cases.push_back({"concat", {type, {dtype, {8, 1}}}, {{"axis", int64_t{1}}}, {{dtype, {8, 5}}}});
    cases.push_back({"copy", {type}, {}, {type}});
  }
  return cases;
}

TEST(InferTypesTest, GoodNodesOfEveryOp) {
  std::set<std::string> covered;
  for (const GoodCase& c : GoodCases()) {
    SCOPED_TRACE(absl::StrCat(c.op, " ", AttributesToString(c.attributes)));
    covered.insert(c.op);
    const auto types = InferTypes(c.op, c.operands, c.attributes);
    ASSERT_TRUE(types.ok()) << types.status();
    EXPECT_EQ(*types, c.results);
  }
  for (const OpDef& def : OpTable()) EXPECT_EQ(covered.count(std::string(def.name)), 1u) << def.name << " has no case";
}

struct BadCase {
  std::string op;
  Types operands;
  AttributeMap attributes;
  std::string message;
};

void ExpectRefused(const std::vector<BadCase>& cases) {
  for (const BadCase& c : cases) {
    const auto types = InferTypes(c.op, c.operands, c.attributes);
    ASSERT_FALSE(types.ok()) << c.message;
    EXPECT_EQ(types.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(types.status().message(), c.message);
  }
}

TEST(InferTypesTest, RefusesArityAndAttributes) {
  const TensorType x = F32({8, 4});
  ExpectRefused({
      {"frob", {x}, {}, "frob: the op table has no such op, so its result types on (f32[8,4]) must be written"},
      {"matmul", {x}, {}, "matmul: it takes 2 to 4 operand(s), not the 1 of (f32[8,4])"},
      {"relu", {x, x}, {}, "relu: it takes 1 operand(s), not the 2 of (f32[8,4], f32[8,4])"},
      {"concat", {}, {{"axis", int64_t{0}}}, "concat: it takes 1 or more operand(s), not the 0 of ()"},
      {"relu", {x}, {{"alpha", 0.1}}, "relu: attribute alpha is unknown on (f32[8,4]); it takes none"},
      {"sgd",
       {x, x},
       {{"rate", 0.1}},
       "sgd: attribute rate is unknown on (f32[8,4], f32[8,4]); it takes lr, momentum, nesterov, weight_decay"},
      {"sgd",
       {x, x},
       {{"lr", int64_t{1}}},
       "sgd: attribute lr=1 is of type int on (f32[8,4], f32[8,4]); give one of type double"},
      {"sgd", {x, x}, {}, "sgd: attribute lr (double) is missing on (f32[8,4], f32[8,4])"},
      {"reshape", {x}, {}, "reshape: attribute shape (list of ints) is missing on (f32[8,4])"},
  });
}

TEST(InferTypesTest, RefusesIdsMasksAndDropouts) {
  const TensorType x = F32({8, 4});
  const TensorType flags{DType::kBool, {8, 4}};
  const TensorType counter{DType::kInt64, {}};
  ExpectRefused({
      {"gather", {x, F32({3})}, {}, "gather: operand 1 f32[3], the ids, is not of dtype i32 or i64"},
      {"gather", {F32({}), I32({3})}, {}, "gather: operand 0 f32[], the table, has no rows"},
      {"gather_grad",
       {x, I32({7})},
       {{"rows", int64_t{9}}},
       "gather_grad: operand 0 f32[8,4] has no row for each id of operand 1 i32[7]"},
      {"gather_grad", {x, I32({8})}, {{"rows", int64_t{-1}}}, "gather_grad: rows is -1; give at least 0"},
      {"gather_along_axis",
       {x, I32({8, 4})},
       {{"axis", int64_t{2}}},
       "gather_along_axis: axis 2 is not one of the 2 axes of operand 0 f32[8,4], which count from 0"},
      {"gather_along_axis",
       {x, I32({9, 1})},
       {{"axis", int64_t{1}}},
       "gather_along_axis: operand 1 i32[9,1], the ids, differs from operand 0 f32[8,4] in more than axis 1"},
      {"gather_along_axis",
       {x, x},
       {{"axis", int64_t{1}}},
       "gather_along_axis: operand 1 f32[8,4], the ids, is not of dtype i32 or i64"},
      {"scatter_add_along_axis",
       {x, I32({8, 1})},
       {{"axis", int64_t{1}}, {"size", int64_t{9}}},
       "scatter_add_along_axis: operand 1 i32[8,1], an id for each addend, is not i32[8,4]"},
      {"add", {flags, flags}, {}, "add: operand 0 bool[8,4] is no number; cast it first"},
      {"equal", {x, I32({8, 4})}, {}, "equal: operand 1 i32[8,4] is not of dtype f32"},
      {"less",
       {x, F32({3})},
       {},
       "less: operand 0 f32[8,4] and operand 1 f32[3] do not broadcast: extents 4 and 3 at axis 1 of the result; "
       "give equal ones, or 1"},
      {"logical_and", {x, x}, {}, "logical_and: operand 0 f32[8,4] is not of dtype bool"},
      {"logical_not", {I32({2})}, {}, "logical_not: operand 0 i32[2] is not of dtype bool"},
      {"where", {x, x, x}, {}, "where: operand 0 f32[8,4] is not of dtype bool"},
      {"where", {flags, x, I32({})}, {}, "where: operand 2 i32[] is not of dtype f32"},
      {"cast",
       {x},
       {{"to", std::string("f16")}},
       "cast: unknown element type 'f16'; choose one of f32, i32, i64, bool"},
      {"dropout", {x, counter, I32({})}, {}, "dropout: operand 2 i32[], the micro-batch, is not i64[]"},
      {"dropout",
       {x, counter, counter},
       {{"p", 1.0}},
       "dropout: p is 1; give the share of elements to drop, in [0, 1)"},
      {"softmax_cross_entropy",
       {x, I32({8}), F32({})},
       {{"reduction", std::string("sum")}},
       "softmax_cross_entropy: operand 2 f32[], the divisor, is given to a sum; give it to a mean"},
      {"labels_per_micro_batch",
       {x},
       {},
       "labels_per_micro_batch: operand 0 f32[8,4], the labels, is not of dtype i32 or i64"},
  });
}

TEST(InferTypesTest, RefusesMatmul) {
  const TensorType a = F32({8, 784});
  const TensorType b = F32({784, 512});
  auto epilogue = [](const std::string& steps) { return AttributeMap{{"epilogue", steps}}; };
  ExpectRefused({
      {"matmul",
       {a, F32({700, 512})},
       {},
       "matmul: operand 0 f32[8,784] and operand 1 f32[700,512] do not multiply: 784 columns against 700 rows"},
      {"matmul",
       {a, b},
       {{"transpose_b", true}},
       "matmul: operand 0 f32[8,784] and operand 1 f32[784,512] transposed do not multiply: 784 columns against 512 "
       "rows"},
      {"matmul",
       {a, b},
       {{"transpose_a", true}},
       "matmul: operand 0 f32[8,784] transposed and operand 1 f32[784,512] do not multiply: 8 columns against 784 "
       "rows"},
      {"matmul", {F32({784}), b}, {}, "matmul: operand 0 f32[784] has rank 1, not 2"},
      {"matmul", {a, I32({784, 512})}, {}, "matmul: operand 1 i32[784,512] is not of dtype f32"},
      {"matmul", {a, b, F32({512})}, {}, "matmul: epilogue \"\" wants 2 operands (a, b), not 3"},
      {"matmul", {a, b}, epilogue("bias+relu"), "matmul: epilogue \"bias+relu\" wants 3 operands (a, b, bias), not 2"},
      {"matmul",
       {a, b, F32({512})},
       epilogue("bias+residual"),
       "matmul: epilogue \"bias+residual\" wants 4 operands (a, b, bias, residual), not 3"},
      {"matmul", {a, b, F32({10})}, epilogue("bias"), "matmul: operand 2 f32[10], the bias, is not f32[512]"},
      {"matmul",
       {a, b, F32({512}), F32({8, 10})},
       epilogue("bias+residual"),
       "matmul: operand 3 f32[8,10], the residual, is not f32[8,512]"},
      {"matmul",
       {a, b, F32({512})},
       epilogue("residual"),
       "matmul: operand 2 f32[512], the residual, is not f32[8,512]"},
      {"matmul",
       {a, b, F32({512}), F32({8, 512})},
       epilogue("residual+bias"),
       "matmul: epilogue \"residual+bias\" has residual before bias; put bias first"},
      {"matmul", {a, b}, epilogue("relu+relu"), "matmul: epilogue step \"relu\" stands there twice"},
      {"matmul",
       {a, b},
       epilogue("swish"),
       "matmul: epilogue step \"swish\" is unknown; give some of bias, residual, relu, gelu_tanh, gelu_erf, tanh, "
       "sigmoid, joined by '+'"},
      {"matmul",
       {a, b},
       {{"kernel", std::string("x")}},
       "matmul: kernel is \"x\"; give one of \"\", \"brg\", \"rows\""},
      {"matmul", {a, b}, {{"group", int64_t{0}}}, "matmul: group is 0; give at least 1"},
      {"batch_matmul",
       {F32({2, 8, 3}), F32({3, 4})},
       {},
       "batch_matmul: operand 0 f32[2,8,3] and operand 1 f32[3,4] differ in the axes before the matrices; "
       "broadcast_to makes them equal"},
      {"batch_matmul",
       {F32({2, 8, 3}), F32({2, 3, 4})},
       {{"transpose_b", true}},
       "batch_matmul: operand 0 f32[2,8,3] and operand 1 f32[2,3,4] transposed do not multiply: 3 columns against 4 "
       "rows"},
      {"batch_matmul", {F32({8}), F32({8, 3})}, {}, "batch_matmul: operand 0 f32[8] holds no matrices"},
  });
}

TEST(InferTypesTest, RefusesElementwise) {
  ExpectRefused({
      {"add",
       {F32({8, 512}), F32({8})},
       {},
       "add: operand 0 f32[8,512] and operand 1 f32[8] do not broadcast: extents 512 and 8 at axis 1 of the result; "
       "give equal ones, or 1"},
      {"add", {F32({8}), I32({8})}, {}, "add: operand 1 i32[8] is not of dtype f32"},
      {"div", {I32({8}), I32({8})}, {}, "div: operand 0 i32[8] is not of dtype f32"},
      {"relu", {I32({8})}, {}, "relu: operand 0 i32[8] is not of dtype f32"},
      {"relu_grad",
       {F32({8}), F32({8, 1})},
       {},
       "relu_grad: operand 1 f32[8,1] is not of the type of operand 0 f32[8]"},
  });
}

TEST(InferTypesTest, RefusesLosses) {
  const TensorType logits = F32({8, 10});
  ExpectRefused({
      {"softmax_cross_entropy",
       {logits, I32({4})},
       {},
       "softmax_cross_entropy: operand 1 i32[4], one label for each row of the logits, is not i32[8]"},
      {"softmax_cross_entropy",
       {logits, F32({8})},
       {},
       "softmax_cross_entropy: operand 1 f32[8], one label for each row of the logits, is not i32[8]"},
      {"softmax_cross_entropy",
       {F32({10}), I32({1})},
       {},
       "softmax_cross_entropy: operand 0 f32[10] has rank 1, not 2"},
      {"softmax_cross_entropy",
       {logits, I32({8})},
       {{"reduction", std::string("none")}},
       "softmax_cross_entropy: reduction is \"none\"; give one of \"mean\", \"sum\""},
      {"softmax_cross_entropy_grad",
       {F32({1}), logits, I32({8})},
       {},
       "softmax_cross_entropy_grad: operand 0 f32[1], the gradient of the loss, is not f32[]"},
      {"mse", {logits, F32({8})}, {}, "mse: operand 1 f32[8], the target, is not f32[8,10]"},
      {"mse_grad", {F32({}), logits, F32({8})}, {}, "mse_grad: operand 2 f32[8], the target, is not f32[8,10]"},
  });
}

TEST(InferTypesTest, RefusesNormalizations) {
  const TensorType x = F32({8, 4});
  ExpectRefused({
      {"softmax",
       {x},
       {{"axis", int64_t{0}}},
       "softmax: axis 0 is not the last one of operand 0 f32[8,4]; give -1 or 1, and transpose for another axis"},
      {"log_softmax_grad",
       {x, x},
       {{"axis", int64_t{2}}},
       "log_softmax_grad: axis 2 is not the last one of operand 0 f32[8,4]; give -1 or 1, and transpose for another "
       "axis"},
      {"log_softmax", {F32({})}, {}, "log_softmax: operand 0 f32[] has no axis to go over"},
      {"softmax", {I32({4})}, {}, "softmax: operand 0 i32[4] is not of dtype f32"},
      {"layer_norm", {x, F32({8}), F32({4})}, {}, "layer_norm: operand 1 f32[8], gamma, is not f32[4]"},
      {"layer_norm", {x, F32({4}), F32({1, 4})}, {}, "layer_norm: operand 2 f32[1,4], beta, is not f32[4]"},
      {"layer_norm", {F32({}), F32({}), F32({})}, {}, "layer_norm: operand 0 f32[] has no axis to normalize"},
      {"layer_norm", {x, F32({4}), F32({4})}, {{"eps", 0.0}}, "layer_norm: eps is 0; give a finite one above 0"},
      {"layer_norm_grad_x",
       {F32({8}), x, F32({4})},
       {},
       "layer_norm_grad_x: operand 0 f32[8], the gradient of the result, is not f32[8,4]"},
      {"layer_norm_grad_gamma", {x, I32({8, 4})}, {}, "layer_norm_grad_gamma: operand 1 i32[8,4] is not of dtype f32"},
      {"layer_norm_grad_gamma", {x, x}, {{"group", int64_t{0}}}, "layer_norm_grad_gamma: group is 0; give at least 1"},
      {"softmax_grad", {x, F32({8})}, {}, "softmax_grad: operand 1 f32[8] is not of the type of operand 0 f32[8,4]"},
  });
}

TEST(InferTypesTest, RefusesReductionsAndMovement) {
  const TensorType x = F32({8, 4});
  ExpectRefused({
      {"reduce_sum",
       {x},
       {{"axes", Ints{2}}},
       "reduce_sum: axis 2 is not one of the 2 axes of operand 0 f32[8,4], which count from 0"},
      {"reduce_mean",
       {x},
       {{"axes", Ints{-1}}},
       "reduce_mean: axis -1 is not one of the 2 axes of operand 0 f32[8,4], which count from 0"},
      {"reduce_sum",
       {x},
       {{"axes", Ints{1, 0}}},
       "reduce_sum: axes of operand 0 f32[8,4] are not in ascending order: 0 after 1"},
      {"broadcast_to",
       {x},
       {{"shape", Ints{8, 5}}},
       "broadcast_to: operand 0 f32[8,4] does not broadcast to [8, 5]; each of its extents, from the last, must be 1 "
       "or that of the shape"},
      {"broadcast_to",
       {x},
       {{"shape", Ints{4}}},
       "broadcast_to: operand 0 f32[8,4] does not broadcast to [4]; each of its extents, from the last, must be 1 or "
       "that of the shape"},
      {"reshape", {x}, {{"shape", Ints{3, 4}}}, "reshape: operand 0 f32[8,4] has 32 elements, shape [3, 4] has 12"},
      {"reshape", {x}, {{"shape", Ints{8, -1}}}, "reshape: shape [8, -1] has the extent -1; give 0 or more"},
      {"transpose",
       {x},
       {{"perm", Ints{0, 0}}},
       "transpose: perm [0, 0] is not an order of the 2 axes of operand 0 f32[8,4]"},
      {"slice",
       {x},
       {{"begin", Ints{6, 0}}, {"size", Ints{3, 4}}},
       "slice: begin 6 and size 3 reach over the extent 8 of axis 0 of operand 0 f32[8,4]"},
      {"slice",
       {x},
       {{"begin", Ints{6}}, {"size", Ints{3, 4}}},
       "slice: begin [6] does not name each of the 2 axes of operand 0 f32[8,4]"},
      {"pad",
       {x},
       {{"before", Ints{0, -1}}, {"after", Ints{0, 0}}},
       "pad: before [0, -1] of operand 0 f32[8,4] has a negative value; give 0 or more"},
      {"concat",
       {x, F32({7, 5})},
       {{"axis", int64_t{0}}},
       "concat: operand 0 f32[8,4] and operand 1 f32[7,5] do not concatenate: they differ in more than axis 0"},
      {"concat",
       {x, I32({8, 4})},
       {{"axis", int64_t{0}}},
       "concat: operand 0 f32[8,4] and operand 1 i32[8,4] do not concatenate: they differ in more than axis 0"},
      {"concat",
       {x, F32({8})},
       {{"axis", int64_t{1}}},
       "concat: operand 0 f32[8,4] and operand 1 f32[8] do not concatenate: they differ in more than axis 1"},
  });
}

TEST(InferTypesTest, RefusesPipelineAndUpdate) {
  const TensorType w = F32({8, 4});
  ExpectRefused({
      {"micro_batch_slice",
       {F32({33, 784})},
       {{"count", int64_t{4}}},
       "micro_batch_slice: extent 33 of axis 0 of operand 0 f32[33,784] does not divide into 4 micro-batches; give a "
       "multiple of 4 or another number of micro-batches"},
      {"micro_batch_slice",
       {F32({})},
       {{"count", int64_t{4}}},
       "micro_batch_slice: axis 0 is not one of the 0 axes of operand 0 f32[], which count from 0"},
      {"micro_batch_slice", {w}, {{"count", int64_t{0}}}, "micro_batch_slice: count is 0; give at least 1"},
      {"micro_batch_merge",
       {w},
       {{"reduce", std::string("max")}, {"count", int64_t{4}}},
       "micro_batch_merge: reduce is \"max\"; give one of \"sum\", \"concat\""},
      {"micro_batch_merge",
       {F32({})},
       {{"reduce", std::string("concat")}, {"count", int64_t{4}}},
       "micro_batch_merge: axis 0 is not one of the 0 axes of operand 0 f32[], which count from 0"},
      {"grad_accumulate", {I32({8})}, {{"count", int64_t{4}}}, "grad_accumulate: operand 0 i32[8] is not of dtype f32"},
      {"sgd", {w, F32({4})}, {{"lr", 0.1}}, "sgd: operand 1 f32[4], the gradient, is not f32[8,4]"},
      {"sgd",
       {w, w},
       {{"lr", 0.1}, {"momentum", 0.9}},
       "sgd: {lr=0.1, momentum=0.9} wants 3 operands (weight, gradient, accum), not 2; the weight is f32[8,4]"},
      {"sgd",
       {w, w, w},
       {{"lr", 0.1}},
       "sgd: {lr=0.1} wants 2 operands (weight, gradient), not 3; the weight is f32[8,4]"},
      {"sgd",
       {w, w},
       {{"lr", 0.1}, {"nesterov", true}},
       "sgd: nesterov on weight f32[8,4] wants a momentum that is not 0"},
      {"adam", {w, w, w, w, w}, {{"lr", 0.1}}, "adam: operand 4 f32[8,4], step, is not f32[]"},
      {"adamw", {w, w, w, F32({4}), F32({})}, {{"lr", 0.1}}, "adamw: operand 3 f32[4], moment2, is not f32[8,4]"},
      {"apply_sgd", {w, w, w, F32({4}), F32({}), F32({})}, {}, "apply_sgd: operand 3 f32[4], fresh, is not f32[8,4]"},
      {"apply_momentum", {w, w, w, F32({2}), F32({})}, {}, "apply_momentum: operand 3 f32[2], lr, is not one f32"},
      {"apply_momentum", {w, w, w, F32({}), I32({})}, {}, "apply_momentum: operand 4 i32[], momentum, is not one f32"},
      {"assign", {w, F32({})}, {}, "assign: operand 1 f32[], the value, is not f32[8,4]"},
      {"assign_add", {{DType::kBool, {}}, {DType::kBool, {}}}, {}, "assign_add: operand 0 bool[] is no number"},
  });
}

TEST(OpTableTest, EachNameOnceAndFound) {
  std::set<absl::string_view> names;
  for (const OpDef& def : OpTable()) {
    EXPECT_TRUE(names.insert(def.name).second) << def.name << " has two rows";
    EXPECT_EQ(FindOp(def.name), &def);
  }
  EXPECT_EQ(FindOp("frob"), nullptr);
}

TEST(OpTableTest, EveryOpThatComputesHasAReference) {
  const std::set<absl::string_view> leaves_the_graph = {"send", "receive", "call", "step_output"};
  for (const OpDef& def : OpTable()) EXPECT_NE(HasReference(def.name), leaves_the_graph.count(def.name) == 1);
}

TEST(OpTableTest, WrittenOperandsAreThoseThatAreThere) {
  Graph graph("writes");
  const TensorType type = F32({2});
  Value* w = graph.AddParameter("w", "w", type, true);
  Value* accum = graph.AddParameter("accum", "accum", type, false);
  Value* g = graph.AddInput("g", type, 0);
  const Node* plain = *graph.AddNode("sgd", {w, g}, {{"lr", 0.1}}, {});
  const Node* momentum = *graph.AddNode("sgd", {w, g, accum}, {{"lr", 0.1}, {"momentum", 0.9}}, {});
  const Node* relu = *graph.AddNode("relu", {g}, {}, {});
  EXPECT_EQ(WrittenOperands(*plain), std::vector<Value*>({w}));
  EXPECT_EQ(WrittenOperands(*momentum), std::vector<Value*>({w, accum}));
  EXPECT_TRUE(WrittenOperands(*relu).empty());
}

TEST(OpTableTest, StatesOfUpdates) {
  EXPECT_TRUE(UpdateStates("sgd", {}).empty());
  EXPECT_TRUE(UpdateStates("sgd", {{"momentum", 0.0}}).empty());
  const std::vector<UpdateState> momentum = UpdateStates("sgd", {{"momentum", 0.9}});
  ASSERT_EQ(momentum.size(), 1u);
  EXPECT_EQ(momentum[0].prefix, "accum");
  EXPECT_FALSE(momentum[0].scalar);
  for (const char* op : {"adam", "adamw"}) {
    const std::vector<UpdateState> adam = UpdateStates(op, {});
    ASSERT_EQ(adam.size(), 3u);
    EXPECT_EQ(adam[0].prefix, "moment1");
    EXPECT_EQ(adam[1].prefix, "moment2");
    EXPECT_EQ(adam[2].prefix, "step");
    EXPECT_FALSE(adam[0].scalar || adam[1].scalar);
    EXPECT_TRUE(adam[2].scalar);
  }
}

// FLOPs of one node on inputs of these types.
int64_t Flops(const std::string& op, const Types& operands, const AttributeMap& attributes) {
  Graph graph("flops");
  std::vector<Value*> values;
  for (const TensorType& type : operands) values.push_back(graph.AddInput("x", type, 0));
  return NodeFlops(**graph.AddNode(op, values, attributes, {}));
}

TEST(NodeFlopsTest, CountsOperations) {
  const TensorType x = F32({8, 4});
  EXPECT_EQ(Flops("matmul", {F32({8, 3}), F32({3, 4})}, {}), 2 * 8 * 3 * 4);
  EXPECT_EQ(Flops("matmul", {F32({3, 8}), F32({4, 3})}, {{"transpose_a", true}, {"transpose_b", true}}), 2 * 8 * 3 * 4);
  EXPECT_EQ(Flops("matmul", {F32({8, 3}), F32({3, 4}), F32({4})}, {{"epilogue", std::string("bias+relu")}}),
            2 * 8 * 3 * 4 + 2 * 8 * 4);
  EXPECT_EQ(Flops("batch_matmul", {F32({5, 8, 3}), F32({5, 3, 4})}, {}), 5 * 2 * 8 * 3 * 4);
  EXPECT_EQ(Flops("add", {F32({8, 1}), F32({4})}, {}), 8 * 4);
  EXPECT_EQ(Flops("relu", {x}, {}), 8 * 4);
  EXPECT_EQ(Flops("reduce_sum", {x}, {}), 8 * 4);
  EXPECT_EQ(Flops("softmax_cross_entropy", {x, I32({8})}, {}), 5 * 8 * 4);
  EXPECT_EQ(Flops("softmax_cross_entropy_grad", {F32({}), x, I32({8})}, {}), 5 * 8 * 4);
  EXPECT_EQ(Flops("softmax", {x}, {}), 5 * 8 * 4);
  EXPECT_EQ(Flops("log_softmax", {x}, {}), 5 * 8 * 4);
  EXPECT_EQ(Flops("softmax_grad", {x, x}, {}), 4 * 8 * 4);
  EXPECT_EQ(Flops("log_softmax_grad", {x, x}, {}), 4 * 8 * 4);
  EXPECT_EQ(Flops("layer_norm", {x, F32({4}), F32({4})}, {}), 8 * 8 * 4);
  EXPECT_EQ(Flops("layer_norm_grad_x", {x, x, F32({4})}, {}), 14 * 8 * 4);
  EXPECT_EQ(Flops("layer_norm_grad_gamma", {x, x}, {}), 8 * 8 * 4);
  EXPECT_EQ(Flops("transpose", {x}, {{"perm", Ints{1, 0}}}), 0);
  Node host_op;
  host_op.op = "frob";
  EXPECT_EQ(NodeFlops(host_op), 0);
}

}  // namespace
}  // namespace pipeloom
