#include "tests/ops/gradient_cases.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace pipeloom {
namespace {

using Cases = std::vector<GradientCase>;
using Ints = std::vector<int64_t>;

TensorType F32(const Shape& shape) { return {DType::kFloat32, shape}; }
TensorType I32(const Shape& shape) { return {DType::kInt32, shape}; }

void AddMatmul(Cases& cases) {
  for (const auto& [m, k, n] : {std::array<int64_t, 3>{2, 3, 4}, {1, 5, 2}, {3, 1, 1}}) {
    for (bool transpose_a : {false, true}) {
      for (bool transpose_b : {false, true}) {
        cases.push_back({"matmul",
                         {F32(transpose_a ? Shape{k, m} : Shape{m, k}), F32(transpose_b ? Shape{n, k} : Shape{k, n})},
                         {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}}});
        cases.push_back(
            {"batch_matmul",
             {F32(transpose_a ? Shape{2, k, m} : Shape{2, m, k}), F32(transpose_b ? Shape{2, n, k} : Shape{2, k, n})},
             {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}}});
      }
    }
  }
}

void AddElementwise(Cases& cases) {
  const std::pair<Shape, Shape> broadcasts[] = {
      {{2, 3}, {2, 3}}, {{2, 3}, {3}},       {{3}, {2, 3}},    {{2, 3}, {}},  {{}, {2, 3}},
      {{}, {}},         {{2, 1}, {1, 3}},    {{2, 3}, {1, 3}}, {{2, 1}, {3}}, {{2, 3, 4}, {3, 1}},
      {{1}, {2, 3}},    {{2, 3, 4}, {1, 1}}, {{1, 3}, {3}},    {{1, 1}, {1}}, {{2, 1, 4}, {3, 1}},
  };
  for (const char* op : {"add", "sub", "mul", "div", "pow", "maximum", "minimum"}) {
    for (const auto& [a, b] : broadcasts) cases.push_back({op, {F32(a), F32(b)}, {}});
  }
  for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 3}, Shape{2, 1, 3}}) {
    for (const char* op : {"neg", "relu", "tanh", "sigmoid", "copy", "gelu", "exp", "log", "sqrt", "rsqrt", "square",
                           "reciprocal", "abs", "erf", "sin", "cos"})
      cases.push_back({op, {F32(shape)}, {}});
    for (bool approximate : {false, true}) cases.push_back({"gelu", {F32(shape)}, {{"approximate", approximate}}});
  }
}

void AddLosses(Cases& cases) {
  for (const char* reduction : {"mean", "sum"}) {
    for (const Shape& shape : {Shape{4, 3}, Shape{1, 2}, Shape{5, 1}}) {
      cases.push_back({"mse", {F32(shape), F32(shape)}, {{"reduction", std::string(reduction)}}});
      cases.push_back(
          {"softmax_cross_entropy", {F32(shape), I32({shape[0]})}, {{"reduction", std::string(reduction)}}});
    }
    cases.push_back({"softmax_cross_entropy",
                     {F32({6, 3}), I32({6})},
                     {{"reduction", std::string(reduction)}, {"ignore_index", int64_t{1}}}});
  }
  cases.push_back({"softmax_cross_entropy", {F32({2, 1}), I32({2})}, {{"ignore_index", int64_t{0}}}});  // all of them
  cases.push_back({"mse", {F32({}), F32({})}, {}});
  cases.push_back({"softmax_cross_entropy", {F32({4, 3}), I32({4})}, {}});
}

// Every set of axes of a rank 3 operand, with and without keep_dims.
void AddReductions(Cases& cases) {
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max"}) {
    for (bool keep_dims : {false, true}) {
      for (int set = 0; set < 8; ++set) {
        Ints axes;
        for (int64_t axis = 0; axis < 3; ++axis) {
          if ((set >> axis) & 1) axes.push_back(axis);
        }
        cases.push_back({op, {F32({2, 3, 4})}, {{"axes", axes}, {"keep_dims", keep_dims}}});
        cases.push_back({op, {F32({2, 1, 3})}, {{"axes", axes}, {"keep_dims", keep_dims}}});
      }
      cases.push_back({op, {F32({})}, {{"keep_dims", keep_dims}}});
    }
  }
}

void AddNormalizations(Cases& cases) {
  for (const char* op : {"softmax", "log_softmax"}) {
    for (const Shape& shape : {Shape{5}, Shape{1}, Shape{2, 3}, Shape{2, 2, 4}}) {
      cases.push_back({op, {F32(shape)}, {}});
      cases.push_back({op, {F32(shape)}, {{"axis", static_cast<int64_t>(shape.size()) - 1}}});
    }
    cases.push_back({op, {F32({3, 2})}, {{"axis", int64_t{-1}}}});
  }
  for (const Shape& shape : {Shape{5}, Shape{3, 4}, Shape{2, 3, 4}, Shape{3, 1}, Shape{1, 6}}) {
    const TensorType along{DType::kFloat32, {shape.back()}};
    cases.push_back({"layer_norm", {F32(shape), along, along}, {}});
    cases.push_back({"layer_norm", {F32(shape), along, along}, {{"eps", 0.5}}});
  }
}

void AddMovement(Cases& cases) {
  cases.push_back({"broadcast_to", {F32({3})}, {{"shape", Ints{2, 3}}}});
  cases.push_back({"broadcast_to", {F32({})}, {{"shape", Ints{2, 3}}}});
  cases.push_back({"broadcast_to", {F32({2, 1})}, {{"shape", Ints{2, 3}}}});
  cases.push_back({"broadcast_to", {F32({2, 1})}, {{"shape", Ints{4, 2, 3}}}});
  cases.push_back({"broadcast_to", {F32({2, 3})}, {{"shape", Ints{2, 3}}}});
  cases.push_back({"reshape", {F32({2, 6})}, {{"shape", Ints{3, 4}}}});
  cases.push_back({"reshape", {F32({1})}, {{"shape", Ints{}}}});
  for (const Ints& perm : {Ints{0, 1, 2}, Ints{0, 2, 1}, Ints{1, 0, 2}, Ints{1, 2, 0}, Ints{2, 0, 1}, Ints{2, 1, 0}}) {
    cases.push_back({"transpose", {F32({2, 3, 4})}, {{"perm", perm}}});
  }
  cases.push_back({"slice", {F32({4, 5})}, {{"begin", Ints{1, 0}}, {"size", Ints{2, 5}}}});
  cases.push_back({"slice", {F32({4, 5})}, {{"begin", Ints{3, 2}}, {"size", Ints{1, 2}}}});
  cases.push_back({"pad", {F32({2, 3})}, {{"before", Ints{1, 0}}, {"after", Ints{0, 2}}}});
  cases.push_back({"pad", {F32({2, 3})}, {{"before", Ints{0, 0}}, {"after", Ints{0, 0}}}});
  cases.push_back({"concat", {F32({2, 3}), F32({1, 3}), F32({4, 3})}, {{"axis", int64_t{0}}}});
  cases.push_back({"concat", {F32({2, 3}), F32({2, 1})}, {{"axis", int64_t{1}}}});
  cases.push_back({"concat", {F32({2, 3})}, {{"axis", int64_t{1}}}});
}

// The ids of the test lie below the last extent of the table.
void AddGathers(Cases& cases) {
  for (const DType id : {DType::kInt32, DType::kInt64}) {
    cases.push_back({"gather", {F32({4}), {id, {7}}}, {}});
    cases.push_back({"gather", {F32({3, 2}), {id, {5}}}, {}});
    cases.push_back({"gather", {F32({3, 2}), {id, {}}}, {}});
    cases.push_back({"gather", {F32({5, 2, 3}), {id, {2, 4}}}, {}});
    for (const auto& [axis, ids] : {std::pair<int64_t, Shape>{0, {7, 2, 3}}, {1, {5, 7, 3}}, {2, {5, 4, 1}}}) {
      const Shape whole = {axis == 0 ? 5 : ids[0], axis == 1 ? 4 : ids[1], 3};
      cases.push_back({"gather_along_axis", {F32(whole), {id, ids}}, {{"axis", axis}}});
      cases.push_back({"scatter_add_along_axis", {F32(ids), {id, ids}}, {{"axis", axis}, {"size", whole[axis]}}});
    }
  }
}

// The gradient test draws whole numbers below the last extent of operand 0 for what is no float.
void AddMasked(Cases& cases) {
  const TensorType counter{DType::kInt64, {}};
  for (const double p : {0.0, 0.4}) {
    cases.push_back(
        {"dropout", {F32({3, 5}), counter, counter}, {{"p", p}, {"seed", int64_t{7}}, {"site", int64_t{9}}}});
  }
  const auto boolean = [](const Shape& shape) { return TensorType{DType::kBool, shape}; };
  cases.push_back({"where", {boolean({3, 2}), F32({3, 2}), F32({3, 2})}, {}});
  cases.push_back({"where", {boolean({3, 2}), F32({2}), F32({})}, {}});
  cases.push_back({"where", {boolean({2}), F32({3, 1}), F32({3, 2})}, {}});
  cases.push_back({"cast", {F32({3, 2})}, {{"to", std::string("f32")}}});
  cases.push_back({"softmax_cross_entropy", {F32({4, 3}), {DType::kInt64, {4}}, F32({})}, {}});
}

}  // namespace

std::vector<GradientCase> GradientCases() {
  Cases cases;
  AddMatmul(cases);
  AddElementwise(cases);
  AddLosses(cases);
  AddReductions(cases);
  AddNormalizations(cases);
  AddMovement(cases);
  AddGathers(cases);
  AddMasked(cases);
  return cases;
}

std::string ToString(const GradientCase& c) {
  std::string text = c.op + "(";
  for (size_t i = 0; i < c.operands.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", c.operands[i].ToString());
  }
  return absl::StrCat(text, ") ", AttributesToString(c.attributes));
}

}  // namespace pipeloom
