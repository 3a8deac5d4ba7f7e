#include "kernels/base/status_macros.h"
#include "tests/testlib/reference_family.h"

namespace pipeloom::reference {
namespace {

// The index in the table of what lies at `index` of the rows.
Index PlaceInTable(const RefTensor& ids, int64_t rows, const Index& index) {
  const auto row_begin = index.begin() + static_cast<int64_t>(ids.type.shape.size());
  const auto id = static_cast<int64_t>(ids.values[Offset(ids.type.shape, Index(index.begin(), row_begin))]);
  PIPELOOM_CHECK(id >= 0 && id < rows, "id ", id, " of ", rows, " rows");
  Index place = {id};
  place.insert(place.end(), row_begin, index.end());
  return place;
}

Tensors Gather(const Tensors& in, const AttributeMap&, const Types& out) {
  const Shape& table = in[0].type.shape;
  return Fill(out[0],
              [&](const Index& index) { return in[0].values[Offset(table, PlaceInTable(in[1], table[0], index))]; });
}

Tensors GatherGrad(const Tensors& in, const AttributeMap&, const Types& out) {
  RefTensor table = Zeros(out[0]);
  ForEach(in[0].type.shape, [&](const Index& index) {
    table.values[Offset(out[0].shape, PlaceInTable(in[1], out[0].shape[0], index))] +=
        in[0].values[Offset(in[0].type.shape, index)];
  });
  return {table};
}

// `index` of the ids with the id that stands there in the place of the axis.
Index PlaceAlongAxis(const RefTensor& ids, const AttributeMap& attributes, int64_t extent, Index index) {
  const auto id = static_cast<int64_t>(ids.values[Offset(ids.type.shape, index)]);
  PIPELOOM_CHECK(id >= 0 && id < extent, "id ", id, " of ", extent);
  index[GetInt(attributes, "axis", 0)] = id;
  return index;
}

Tensors GatherAlongAxis(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  const Shape& whole = in[0].type.shape;
  const int64_t extent = whole[GetInt(attributes, "axis", 0)];
  return Fill(out[0], [&](const Index& index) {
    return in[0].values[Offset(whole, PlaceAlongAxis(in[1], attributes, extent, index))];
  });
}

Tensors ScatterAddAlongAxis(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  RefTensor whole = Zeros(out[0]);
  ForEach(in[0].type.shape, [&](const Index& index) {
    const Index place = PlaceAlongAxis(in[1], attributes, GetInt(attributes, "size", 0), index);
    whole.values[Offset(out[0].shape, place)] += in[0].values[Offset(in[0].type.shape, index)];
  });
  return {whole};
}

}  // namespace

References GatherReferences() {
  return {
      {"gather", Gather},
      {"gather_grad", GatherGrad},
      {"gather_along_axis", GatherAlongAxis},
      {"scatter_add_along_axis", ScatterAddAlongAxis},
  };
}

}  // namespace pipeloom::reference
