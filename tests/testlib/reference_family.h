#ifndef TESTS_TESTLIB_REFERENCE_FAMILY_H_
#define TESTS_TESTLIB_REFERENCE_FAMILY_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/testlib/reference_ops.h"

// What the families of reference ops share. Internal to tests/testlib.
namespace pipeloom::reference {

using Tensors = std::vector<RefTensor>;
using Types = std::vector<TensorType>;
using Index = std::vector<int64_t>;
using Reference = std::function<Tensors(const Tensors&, const AttributeMap&, const Types&)>;
using References = std::map<std::string, Reference, std::less<>>;

// One function a family, each in the file of its name.
References MatmulReferences();
References ElementwiseReferences();
References MathReferences();
References LossReferences();
References ReductionReferences();
References NormalizationReferences();
References MovementReferences();
References GatherReferences();
References LogicalReferences();
References DropoutReferences();
References UpdateReferences();

RefTensor Zeros(const TensorType& type);
int64_t Offset(const Shape& shape, const Index& index);
// Calls `visit` with each index of the shape, in row-major order.
void ForEach(const Shape& shape, const std::function<void(const Index&)>& visit);
// The element that a tensor broadcast to the rank of `index` has there.
double BroadcastAt(const RefTensor& tensor, const Index& index);
// The result's element at each index, as a function of the index.
Tensors Fill(const TensorType& type, const std::function<double(const Index&)>& element);

Reference Binary(double (*f)(double, double));
Reference Unary(double (*f)(double));
double Sigmoid(double x);
double GeluErf(double x);
double GeluTanh(double x);
// log(sum(exp(row))), shifted by the maximum.
double LogSumExp(const double* row, int64_t count);

}  // namespace pipeloom::reference

#endif  // TESTS_TESTLIB_REFERENCE_FAMILY_H_
