#include "plugin/mindspore/op_families.h"

namespace pipeloom::ms {
namespace {

constexpr const char* kAdd = "add";
constexpr const char* kSub = "sub";
constexpr const char* kMul = "mul";
constexpr const char* kDiv = "div";
constexpr const char* kMaximum = "maximum";
constexpr const char* kMinimum = "minimum";
constexpr const char* kPow = "pow";
constexpr const char* kNeg = "neg";
constexpr const char* kExp = "exp";
constexpr const char* kLog = "log";
constexpr const char* kSqrt = "sqrt";
constexpr const char* kRsqrt = "rsqrt";
constexpr const char* kSquare = "square";
constexpr const char* kAbs = "abs";
constexpr const char* kRelu = "relu";
constexpr const char* kTanh = "tanh";
constexpr const char* kSigmoid = "sigmoid";
constexpr const char* kReluGrad = "relu_grad";
constexpr const char* kEqual = "equal";
constexpr const char* kNotEqual = "not_equal";
constexpr const char* kLess = "less";
constexpr const char* kLessEqual = "less_equal";
constexpr const char* kGreater = "greater";
constexpr const char* kGreaterEqual = "greater_equal";
constexpr const char* kLogicalAnd = "logical_and";
constexpr const char* kLogicalOr = "logical_or";
constexpr const char* kLogicalNot = "logical_not";
constexpr const char* kErf = "erf";
constexpr const char* kSin = "sin";
constexpr const char* kCos = "cos";
constexpr const char* kSign = "sign";
constexpr const char* kFloor = "floor";
constexpr const char* kReciprocal = "reciprocal";
constexpr const char* kTanhGrad = "tanh_grad";
constexpr const char* kSigmoidGrad = "sigmoid_grad";

// An operand that is a number, of the other one's element type: Muls(x, 2).
template <const char* const& kOp>
Item WithNumber(const OpImport& import) {
  const Tensor tensor = import.TensorAt(0);
  const Tensor number = import.Scalar(NumberOf(import.ConstantAt(1)), tensor.type.dtype);
  return Item::Of(import.Emit(kOp, {tensor, number}, import.ResultType()));
}

// (y, dy): here the gradient comes first.
template <const char* const& kOp>
Item GradientOfResult(const OpImport& import) {
  return Item::Of(import.Emit(kOp, {import.TensorAt(1), import.TensorAt(0)}, import.ResultType()));
}

// (x, number, alpha): x - alpha number.
Item SubScalar(const OpImport& import) {
  const double number = NumberOf(import.ConstantAt(1)) * NumberOf(import.ConstantAt(2));
  const Tensor x = import.TensorAt(0);
  return Item::Of(import.Emit("sub", {x, import.Scalar(number, x.type.dtype)}, import.ResultType()));
}

// (x, least, most), each perhaps None
Item ClampScalar(const OpImport& import) {
  Tensor x = import.TensorAt(0);
  constexpr const char* kBounds[] = {"maximum", "minimum"};
  for (size_t i = 0; i < 2; ++i) {
    const host::ValuePtr bound = import.ConstantAt(i + 1);
    if (!IsNone(bound)) x = import.Emit(kBounds[i], {x, import.Scalar(NumberOf(bound), x.type.dtype)}, x.type);
  }
  return Item::Of(x);
}

// (y, dy): dy / (2 y)
Item SqrtGrad(const OpImport& import) {
  const Type type = import.ResultType();
  const Tensor half = import.Emit("mul", {import.TensorAt(1), import.Scalar(0.5)}, type);
  return Item::Of(import.Emit("div", {half, import.TensorAt(0)}, type));
}

// (y, dy): -dy y^3 / 2
Item RsqrtGrad(const OpImport& import) {
  const Type type = import.ResultType();
  const Tensor y = import.TensorAt(0);
  const Tensor cube = import.Emit("mul", {import.Emit("square", {y}, y.type), y}, y.type);
  const Tensor half = import.Emit("mul", {import.TensorAt(1), import.Scalar(-0.5)}, type);
  return Item::Of(import.Emit("mul", {half, cube}, type));
}

Item Silu(const OpImport& import) {
  const Tensor x = import.TensorAt(0);
  return Item::Of(import.Emit("mul", {x, import.Emit("sigmoid", {x}, x.type)}, x.type));
}

// (dy, x): dy s (1 + x (1 - s)), s = sigmoid(x)
Item SiluGrad(const OpImport& import) {
  const Tensor x = import.TensorAt(1);
  const Tensor s = import.Emit("sigmoid", {x}, x.type);
  const Tensor rest = import.Emit("sub", {import.Scalar(1), s}, x.type);
  const Tensor slope = import.Emit("add", {import.Emit("mul", {x, rest}, x.type), import.Scalar(1)}, x.type);
  const Tensor scaled = import.Emit("mul", {import.TensorAt(0), s}, x.type);
  return Item::Of(import.Emit("mul", {scaled, slope}, x.type));
}

// The tanh form, as MindSpore computes it.
Item Gelu(const OpImport& import) {
  return Item::Of(import.Emit("gelu", {import.TensorAt(0)}, import.ResultType(), {{"approximate", true}}));
}

// (dy, x, y)
Item GeluGrad(const OpImport& import) {
  return Item::Of(
      import.Emit("gelu_grad", {import.TensorAt(0), import.TensorAt(1)}, import.ResultType(), {{"approximate", true}}));
}

// (x, mask, value)
Item MaskedFill(const OpImport& import) {
  const Tensor x = import.TensorAt(0);
  const Tensor value = import.TensorAt(2);
  return Item::Of(import.Emit("where", {import.TensorAt(1), value, x}, import.ResultType()));
}

// (mask, x, y)
Item Select(const OpImport& import) {
  return Item::Of(
      import.Emit("where", {import.TensorAt(0), import.TensorAt(1), import.TensorAt(2)}, import.ResultType()));
}

Item AddN(const OpImport& import) {
  const std::vector<Item>& terms = import.operand(0).elements;
  if (terms.empty()) throw Refused(Describe(import.node()) + " adds nothing");
  Tensor sum = import.AsTensor(terms[0]);
  for (size_t i = 1; i < terms.size(); ++i) {
    sum = import.Emit("add", {sum, import.AsTensor(terms[i])}, import.ResultType());
  }
  return Item::Of(sum);
}

Item Cast(const OpImport& import) {
  const Tensor x = import.TensorAt(0);
  const Type result = import.ResultType();
  if (x.type == result) return Item::Of(x);
  constexpr const char* kNames[] = {"f32", "i32", "i64", "bool"};
  return Item::Of(import.Emit("cast", {x}, result, {{"to", std::string(kNames[result.dtype])}}));
}

}  // namespace

void AddElementwiseOps(Rewrites* rewrites) {
  rewrites->insert({
      {"Abs", Unary<kAbs>},
      {"Add", Binary<kAdd>},
      {"AddN", AddN},
      {"Adds", WithNumber<kAdd>},
      {"Cast", Cast},
      {"ClampScalar", ClampScalar},
      {"Cos", Unary<kCos>},
      {"Div", Binary<kDiv>},
      {"Divs", WithNumber<kDiv>},
      {"Equal", Binary<kEqual>},
      {"Erf", Unary<kErf>},
      {"Exp", Unary<kExp>},
      {"Floor", Unary<kFloor>},
      {"GeLU", Gelu},
      {"GeLUGrad", GeluGrad},
      {"Greater", Binary<kGreater>},
      {"GreaterEqual", Binary<kGreaterEqual>},
      {"Less", Binary<kLess>},
      {"LessEqual", Binary<kLessEqual>},
      {"Log", Unary<kLog>},
      {"LogicalAnd", Binary<kLogicalAnd>},
      {"LogicalNot", Unary<kLogicalNot>},
      {"LogicalOr", Binary<kLogicalOr>},
      {"MaskedFill", MaskedFill},
      {"Maximum", Binary<kMaximum>},
      {"Minimum", Binary<kMinimum>},
      {"Mul", Binary<kMul>},
      {"Muls", WithNumber<kMul>},
      {"Neg", Unary<kNeg>},
      {"NotEqual", Binary<kNotEqual>},
      {"Pow", Binary<kPow>},
      {"PowTensorScalar", WithNumber<kPow>},
      {"ReLU", Unary<kRelu>},
      {"RealDiv", Binary<kDiv>},
      {"Reciprocal", Unary<kReciprocal>},
      {"ReluGrad", Binary<kReluGrad>},
      {"Rsqrt", Unary<kRsqrt>},
      {"RsqrtGrad", RsqrtGrad},
      {"Select", Select},
      {"SiLU", Silu},
      {"SiLUGrad", SiluGrad},
      {"Sigmoid", Unary<kSigmoid>},
      {"SigmoidGrad", GradientOfResult<kSigmoidGrad>},
      {"Sign", Unary<kSign>},
      {"Sin", Unary<kSin>},
      {"Sqrt", Unary<kSqrt>},
      {"SqrtGrad", SqrtGrad},
      {"Square", Unary<kSquare>},
      {"Sub", Binary<kSub>},
      {"SubScalar", SubScalar},
      {"Subs", WithNumber<kSub>},
      {"Tanh", Unary<kTanh>},
      {"TanhGrad", GradientOfResult<kTanhGrad>},
  });
}

}  // namespace pipeloom::ms
