#include <algorithm>
#include <utility>
#include <vector>

#include "plugin/mindspore/op_families.h"

namespace pipeloom::ms {
namespace {

// Reshape, Flatten, ExpandDims, Squeeze: the same elements in other extents.
Item Reshape(const OpImport& import) { return Item::Of(import.Reshape(import.TensorAt(0), import.ResultType().shape)); }

// (x, axes, keep) with axes () or None for all.
template <const char* const& kOp>
Item Reduction(const OpImport& import) {
  const Tensor x = import.TensorAt(0);
  const auto rank = static_cast<int64_t>(x.type.shape.size());
  const bool keep = BoolOf(import.ConstantAt(2));
  const host::ValuePtr given = import.ConstantAt(1);
  std::vector<int64_t> axes = IsNone(given) ? std::vector<int64_t>() : IntsOf(given);
  for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  std::sort(axes.begin(), axes.end());
  if (rank == 0) return Item::Of(x);
  Attributes attributes;
  if (!axes.empty()) attributes["axes"] = axes;
  if (keep) attributes["keep_dims"] = true;
  return Item::Of(import.Emit(kOp, {x}, import.ResultType(), attributes));
}

// (x, axis, index)
Item GatherD(const OpImport& import) {
  const Tensor x = import.TensorAt(0);
  return Item::Of(import.Emit("gather_along_axis", {x, import.TensorAt(2)}, import.ResultType(),
                              {{"axis", AxisAt(import, 1, x.type)}}));
}

// (x, axis, index, dy)
Item GatherDGrad(const OpImport& import) {
  const Tensor x = import.TensorAt(0);
  const int64_t axis = AxisAt(import, 1, x.type);
  return Item::Of(import.Emit("scatter_add_along_axis", {import.TensorAt(3), import.TensorAt(2)}, import.ResultType(),
                              {{"axis", axis}, {"size", x.type.shape[static_cast<size_t>(axis)]}}));
}

// Axes of extent 1 are broadcast; another axis is repeated beside one of extent 1 that is put before it.
Item Tile(const OpImport& import) {
  const Tensor x = import.TensorAt(0);
  const Type result = import.ResultType();
  std::vector<int64_t> repeats = IntsOf(import.ConstantAt(1));
  std::vector<int64_t> extents = x.type.shape;
  while (repeats.size() < extents.size()) repeats.insert(repeats.begin(), 1);
  while (extents.size() < repeats.size()) extents.insert(extents.begin(), 1);
  std::vector<int64_t> apart;
  std::vector<int64_t> wide;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] != 1 && repeats[i] != 1) {
      apart.push_back(1);
      wide.push_back(repeats[i]);
      apart.push_back(extents[i]);
      wide.push_back(extents[i]);
    } else {
      apart.push_back(extents[i]);
      wide.push_back(extents[i] * repeats[i]);
    }
  }
  const Tensor spread = import.Reshape(x, apart);
  const Tensor repeated =
      apart == wide ? spread : import.Emit("broadcast_to", {spread}, {x.type.dtype, wide}, {{"shape", wide}});
  return Item::Of(import.Reshape(repeated, result.shape));
}

// (table, ids, axis, batch dims) along axis 0.
Item Gather(const OpImport& import) {
  const Tensor table = import.TensorAt(0);
  if (AxisAt(import, 2, table.type) != 0) throw Refused(Describe(import.node()) + " gathers along another axis than 0");
  if (table.type.shape.size() == 1) {
    // Elements, not rows: rows of one element.
    const Tensor rows = import.Reshape(table, {table.type.shape[0], 1});
    const Tensor ids = import.TensorAt(1);
    Type taken = import.ResultType();
    const std::vector<int64_t> shape = taken.shape;
    taken.shape.push_back(1);
    return Item::Of(import.Reshape(import.Emit("gather", {rows, ids}, taken), shape));
  }
  return Item::Of(import.Emit("gather", {table, import.TensorAt(1)}, import.ResultType()));
}

// (x, ids, rows): the gradient of a table whose rows were gathered.
Item UnsortedSegmentSum(const OpImport& import) {
  const Type result = import.ResultType();
  return Item::Of(import.Emit("gather_grad", {import.TensorAt(0), import.TensorAt(1)}, result,
                              {{"rows", IntOf(import.ConstantAt(2))}}));
}

Item Transpose(const OpImport& import) {
  const Tensor x = import.TensorAt(0);
  std::vector<int64_t> perm = IntsOf(import.ConstantAt(1));
  for (int64_t& axis : perm) axis += axis < 0 ? static_cast<int64_t>(perm.size()) : 0;
  return Item::Of(import.Emit("transpose", {x}, import.ResultType(), {{"perm", perm}}));
}

// What a StridedSlice covers of each axis.
struct Bounds {
  std::vector<int64_t> begin;
  std::vector<int64_t> end;
};

struct Masks {
  int64_t begin = 0;   // axes from their first element on
  int64_t end = 0;     // axes to their last element
  int64_t others = 0;  // ellipsis and new axes
  int64_t shrink = 0;  // axes of one element, which the result does not have
};

Bounds BoundsOf(const OpImport& import, size_t begin_at, const Masks& masks, const std::vector<int64_t>& extents) {
  Bounds bounds = {IntsOf(import.ConstantAt(begin_at)), IntsOf(import.ConstantAt(begin_at + 1))};
  const std::vector<int64_t> strides = IntsOf(import.ConstantAt(begin_at + 2));
  if (masks.others != 0)
    throw Refused(Describe(import.node()) + " has an ellipsis or a new axis, which is not there yet");
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    const int64_t extent = extents[axis];
    if (axis >= bounds.begin.size()) {
      bounds.begin.push_back(0);
      bounds.end.push_back(extent);
      continue;
    }
    if (strides[axis] != 1) {
      throw Refused(Describe(import.node()) + " takes elements " + std::to_string(strides[axis]) +
                    " apart; only slices without gaps are there yet");
    }
    const auto bit = [axis](int64_t mask) { return ((mask >> axis) & 1) != 0; };
    const auto clamped = [extent](int64_t bound) {
      return std::clamp<int64_t>(bound < 0 ? bound + extent : bound, 0, extent);
    };
    bounds.begin[axis] = bit(masks.begin) ? 0 : clamped(bounds.begin[axis]);
    bounds.end[axis] = bit(masks.shrink) ? bounds.begin[axis] + 1 : bit(masks.end) ? extent : clamped(bounds.end[axis]);
  }
  return bounds;
}

std::vector<int64_t> SizeOf(const Bounds& bounds) {
  std::vector<int64_t> size;
  for (size_t axis = 0; axis < bounds.begin.size(); ++axis) size.push_back(bounds.end[axis] - bounds.begin[axis]);
  return size;
}

// (x, begin, end, strides, masks of begin, end, ellipsis, new axes, shrunk axes)
Item StridedSlice(const OpImport& import) {
  const Tensor x = import.TensorAt(0);
  const auto mask = [&](size_t at) { return IntOf(import.ConstantAt(at)); };
  const Masks masks = {mask(4), mask(5), mask(6) | mask(7), mask(8)};
  const Bounds bounds = BoundsOf(import, 1, masks, x.type.shape);
  const std::vector<int64_t> size = SizeOf(bounds);
  const Tensor taken = import.Emit("slice", {x}, {x.type.dtype, size}, {{"begin", bounds.begin}, {"size", size}});
  return Item::Of(import.Reshape(taken, import.ResultType().shape));
}

// (dy, shape of x, begin, end, strides)
Item StridedSliceGrad(const OpImport& import) {
  const auto mask = [&](const char* name) { return IntAttribute(import.node(), name); };
  const Masks masks = {mask("begin_mask"), mask("end_mask"), mask("ellipsis_mask") | mask("new_axis_mask"),
                       mask("shrink_axis_mask")};
  const Type result = import.ResultType();
  const Bounds bounds = BoundsOf(import, 2, masks, result.shape);
  std::vector<int64_t> after;
  for (size_t axis = 0; axis < result.shape.size(); ++axis) after.push_back(result.shape[axis] - bounds.end[axis]);
  const Tensor dy = import.Reshape(import.TensorAt(0), SizeOf(bounds));
  return Item::Of(import.Emit("pad", {dy}, result, {{"before", bounds.begin}, {"after", after}}));
}

// (tensors, axis)
Item Concat(const OpImport& import) {
  std::vector<Tensor> parts;
  for (const Item& part : import.operand(0).elements) parts.push_back(import.AsTensor(part));
  return Item::Of(
      import.Emit("concat", parts, import.ResultType(), {{"axis", AxisAt(import, 1, import.ResultType())}}));
}

// Parts of these extents along an axis, as a tuple.
Item Parts(const OpImport& import, const Tensor& x, size_t axis, const std::vector<int64_t>& extents) {
  std::vector<Item> parts;
  std::vector<int64_t> begin(x.type.shape.size(), 0);
  for (const int64_t extent : extents) {
    Type type = x.type;
    type.shape[axis] = extent;
    parts.push_back(Item::Of(import.Emit("slice", {x}, type, {{"begin", begin}, {"size", type.shape}})));
    begin[axis] += extent;
  }
  return Item::TupleOf(std::move(parts));
}

// (x, axis, number of parts)
Item Split(const OpImport& import) {
  const Tensor x = import.TensorAt(0);
  const auto axis = static_cast<size_t>(AxisAt(import, 1, x.type));
  const int64_t count = IntOf(import.ConstantAt(2));
  return Parts(import, x, axis, std::vector<int64_t>(static_cast<size_t>(count), x.type.shape[axis] / count));
}

// (x, extents, axis)
Item SplitWithSize(const OpImport& import) {
  const Tensor x = import.TensorAt(0);
  return Parts(import, x, static_cast<size_t>(AxisAt(import, 2, x.type)), IntsOf(import.ConstantAt(1)));
}

// A constant of one number, as (shape, number or dtype) or like another tensor.
Item Filled(const OpImport& import, double number) { return Item::Of(import.Constant(import.ResultType(), number)); }
Item Zeros(const OpImport& import) { return Filled(import, 0); }
Item Fill(const OpImport& import) { return Filled(import, NumberOf(import.ConstantAt(1))); }

Item Copy(const OpImport& import) { return Item::Of(import.TensorAt(0)); }

}  // namespace

void AddMovementOps(Rewrites* rewrites) {
  rewrites->insert({
      {"Concat", Concat},
      {"ExpandDims", Reshape},
      {"FillV2", Fill},
      {"Flatten", Reshape},
      {"Gather", Gather},
      {"GatherD", GatherD},
      {"GatherDGradV2", GatherDGrad},
      {"Reshape", Reshape},
      {"Split", Split},
      {"SplitWithSize", SplitWithSize},
      {"Squeeze", Reshape},
      {"StridedSlice", StridedSlice},
      {"StridedSliceGrad", StridedSliceGrad},
      {"TensorMove", Copy},
      {"Tile", Tile},
      {"Transpose", Transpose},
      {"UnsortedSegmentSum", UnsortedSegmentSum},
      {"Zeros", Zeros},
      {"ZerosLike", Zeros},
      {"ZerosLikeExt", Zeros},
  });
}

}  // namespace pipeloom::ms
