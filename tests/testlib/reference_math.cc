#include <algorithm>
#include <cmath>

#include "tests/testlib/reference_family.h"

namespace pipeloom::reference {

References MathReferences() {
  return {
      {"exp", Unary([](double x) { return std::exp(x); })},
      {"log", Unary([](double x) { return std::log(x); })},
      {"sqrt", Unary([](double x) { return std::sqrt(x); })},
      {"rsqrt", Unary([](double x) { return std::pow(x, -0.5); })},
      {"square", Unary([](double x) { return x * x; })},
      {"reciprocal", Unary([](double x) { return 1 / x; })},
      {"abs", Unary([](double x) { return std::abs(x); })},
      {"erf", Unary([](double x) { return std::erf(x); })},
      {"sin", Unary([](double x) { return std::sin(x); })},
      {"cos", Unary([](double x) { return std::cos(x); })},
      {"sign", Unary([](double x) { return x > 0 ? 1.0 : (x < 0 ? -1.0 : 0.0); })},
      {"floor", Unary([](double x) { return std::floor(x); })},
      {"pow", Binary([](double a, double b) { return std::pow(a, b); })},
      {"maximum", Binary([](double a, double b) { return std::max(a, b); })},
      {"minimum", Binary([](double a, double b) { return std::min(a, b); })},
  };
}

}  // namespace pipeloom::reference
