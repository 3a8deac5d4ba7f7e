#include <algorithm>
#include <cmath>

#include "tests/testlib/reference_family.h"

namespace pipeloom::reference {
namespace {

constexpr double kPi = 3.14159265358979323846;

}  // namespace

Reference Binary(double (*f)(double, double)) {
  return [f](const Tensors& in, const AttributeMap&, const Types& out) {
    return Fill(out[0], [&](const Index& index) { return f(BroadcastAt(in[0], index), BroadcastAt(in[1], index)); });
  };
}

Reference Unary(double (*f)(double)) {
  return [f](const Tensors& in, const AttributeMap&, const Types& out) {
    return Fill(out[0], [&](const Index& index) { return f(BroadcastAt(in[0], index)); });
  };
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double GeluErf(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }

double GeluTanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x))); }

namespace {

double GeluErfGrad(double dy, double x) {
  return dy * (0.5 * (1 + std::erf(x / std::sqrt(2.0))) + x * std::exp(-x * x / 2) / std::sqrt(2 * kPi));
}
double GeluTanhGrad(double dy, double x) {
  const double t = std::tanh(std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x));
  return dy * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * std::sqrt(2 / kPi) * (1 + 3 * 0.044715 * x * x));
}

Tensors Gelu(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  return Unary(GetBool(attributes, "approximate", true) ? GeluTanh : GeluErf)(in, attributes, out);
}
Tensors GeluGrad(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  return Binary(GetBool(attributes, "approximate", true) ? GeluTanhGrad : GeluErfGrad)(in, attributes, out);
}

}  // namespace

References ElementwiseReferences() {
  return {
      {"add", Binary([](double a, double b) { return a + b; })},
      {"sub", Binary([](double a, double b) { return a - b; })},
      {"mul", Binary([](double a, double b) { return a * b; })},
      {"div", Binary([](double a, double b) { return a / b; })},
      {"neg", Unary([](double x) { return -x; })},
      {"relu", Unary([](double x) { return std::max(x, 0.0); })},
      {"relu_grad", Binary([](double dy, double y) { return y > 0 ? dy : 0.0; })},
      {"tanh", Unary([](double x) { return std::tanh(x); })},
      {"tanh_grad", Binary([](double dy, double y) { return dy * (1 - y * y); })},
      {"sigmoid", Unary(Sigmoid)},
      {"sigmoid_grad", Binary([](double dy, double y) { return dy * y * (1 - y); })},
      {"gelu", Gelu},
      {"gelu_grad", GeluGrad},
  };
}

}  // namespace pipeloom::reference
