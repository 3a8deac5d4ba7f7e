#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/testlib/reference_family.h"

namespace pipeloom::reference {
namespace {

Tensors Where(const Tensors& in, const AttributeMap&, const Types& out) {
  return Fill(out[0], [&](const Index& index) {
    return BroadcastAt(in[0], index) != 0 ? BroadcastAt(in[1], index) : BroadcastAt(in[2], index);
  });
}

double ToInteger(double x, double least, double most) {
  return std::isnan(x) ? 0 : std::clamp(std::trunc(x), least, most);
}

Tensors Cast(const Tensors& in, const AttributeMap&, const Types& out) {
  RefTensor cast = {out[0], in[0].values};
  for (double& x : cast.values) {
    switch (out[0].dtype) {
      case DType::kFloat32:
        break;
      case DType::kInt32:
        x = ToInteger(x, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
        break;
      case DType::kInt64:
        x = ToInteger(x, -0x1p63, 0x1p63);
        break;
      case DType::kBool:
        x = x != 0 ? 1 : 0;
        break;
    }
  }
  return {cast};
}

}  // namespace

References LogicalReferences() {
  return {
      {"equal", Binary([](double a, double b) { return a == b ? 1.0 : 0.0; })},
      {"not_equal", Binary([](double a, double b) { return a != b ? 1.0 : 0.0; })},
      {"less", Binary([](double a, double b) { return a < b ? 1.0 : 0.0; })},
      {"less_equal", Binary([](double a, double b) { return a <= b ? 1.0 : 0.0; })},
      {"greater", Binary([](double a, double b) { return a > b ? 1.0 : 0.0; })},
      {"greater_equal", Binary([](double a, double b) { return a >= b ? 1.0 : 0.0; })},
      {"logical_and", Binary([](double a, double b) { return a * b != 0 ? 1.0 : 0.0; })},
      {"logical_or", Binary([](double a, double b) { return a + b != 0 ? 1.0 : 0.0; })},
      {"logical_not", Unary([](double x) { return 1 - x; })},
      {"where", Where},
      {"cast", Cast},
  };
}

}  // namespace pipeloom::reference
