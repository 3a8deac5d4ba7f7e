#include "tests/testlib/reference_family.h"

namespace pipeloom::reference {
namespace {

Tensors BroadcastTo(const Tensors& in, const AttributeMap&, const Types& out) {
  return Fill(out[0], [&](const Index& index) { return BroadcastAt(in[0], index); });
}

Tensors SameElements(const Tensors& in, const AttributeMap&, const Types& out) { return {{out[0], in[0].values}}; }

Tensors Transpose(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  const std::vector<int64_t> perm = GetInts(attributes, "perm", {});
  return Fill(out[0], [&](const Index& index) {
    Index source(index.size());
    for (size_t axis = 0; axis < index.size(); ++axis) source[perm[axis]] = index[axis];
    return in[0].values[Offset(in[0].type.shape, source)];
  });
}

Tensors Slice(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  const std::vector<int64_t> begin = GetInts(attributes, "begin", {});
  return Fill(out[0], [&](const Index& index) {
    Index source = index;
    for (size_t axis = 0; axis < index.size(); ++axis) source[axis] += begin[axis];
    return in[0].values[Offset(in[0].type.shape, source)];
  });
}

Tensors Pad(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  const std::vector<int64_t> before = GetInts(attributes, "before", {});
  Tensors result = {Zeros(out[0])};
  ForEach(in[0].type.shape, [&](const Index& index) {
    Index target = index;
    for (size_t axis = 0; axis < index.size(); ++axis) target[axis] += before[axis];
    result[0].values[Offset(out[0].shape, target)] = in[0].values[Offset(in[0].type.shape, index)];
  });
  return result;
}

Tensors ConcatAlong(const Tensors& in, size_t axis, const TensorType& type) {
  return Fill(type, [&](const Index& index) {
    Index source = index;
    size_t part = 0;
    while (source[axis] >= in[part].type.shape[axis]) source[axis] -= in[part++].type.shape[axis];
    return in[part].values[Offset(in[part].type.shape, source)];
  });
}

Tensors Concat(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  return ConcatAlong(in, static_cast<size_t>(GetInt(attributes, "axis", 0)), out[0]);
}

Tensors MicroBatchSlice(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  const auto axis = static_cast<size_t>(GetInt(attributes, "axis", 0));
  Tensors micro_batches;
  for (int64_t m = 0; m < GetInt(attributes, "count", 1); ++m) {
    std::vector<int64_t> begin(out[0].shape.size(), 0);
    begin[axis] = m * out[0].shape[axis];
    micro_batches.push_back(Slice(in, {{"begin", begin}}, out)[0]);
  }
  return micro_batches;
}

Tensors Accumulate(const Tensors& in, const AttributeMap&, const Types& out) {
  Tensors sum = {Zeros(out[0])};
  for (const RefTensor& addend : in) {
    for (size_t i = 0; i < addend.values.size(); ++i) sum[0].values[i] += addend.values[i];
  }
  return sum;
}

Tensors MicroBatchMerge(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  return GetString(attributes, "reduce", "") == "sum" ? Accumulate(in, attributes, out) : ConcatAlong(in, 0, out[0]);
}

}  // namespace

References MovementReferences() {
  return {
      {"broadcast_to", BroadcastTo},
      {"reshape", SameElements},
      {"transpose", Transpose},
      {"slice", Slice},
      {"pad", Pad},
      {"concat", Concat},
      {"copy", SameElements},
      {"print", [](const Tensors&, const AttributeMap&, const Types&) { return Tensors(); }},
      {"micro_batch_slice", MicroBatchSlice},
      {"micro_batch_merge", MicroBatchMerge},
      {"grad_accumulate", Accumulate},
  };
}

}  // namespace pipeloom::reference
