#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/base/status_macros.h"
#include "kernels/cpu/families.h"

namespace pipeloom {
namespace {

// Every op of this file is a few strided copies. They move the bits of elements, so that a Word is an unsigned integer
// of the element's size.

struct CopyDim {
  int64_t extent;
  int64_t src_step;  // elements; 0 repeats
  int64_t dst_step;
};

struct StridedCopy {
  int input;
  int64_t src_offset = 0;
  int64_t dst_offset = 0;
  std::vector<CopyDim> dims;  // outermost first
};

std::vector<int64_t> DenseSteps(const Shape& shape) {
  std::vector<int64_t> steps(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) steps[i - 1] = steps[i] * shape[i];
  return steps;
}

// The same copy with as few dimensions as it has, at least one.
std::vector<CopyDim> Collapse(const std::vector<CopyDim>& dims) {
  std::vector<CopyDim> out;
  for (const CopyDim& dim : dims) {
    if (dim.extent == 1) continue;
    if (!out.empty() && out.back().src_step == dim.extent * dim.src_step &&
        out.back().dst_step == dim.extent * dim.dst_step) {
      out.back() = {out.back().extent * dim.extent, dim.src_step, dim.dst_step};
    } else {
      out.push_back(dim);
    }
  }
  if (out.empty()) out.push_back({1, 1, 1});
  return out;
}

template <typename Word>
void CopyRun(const Word* src, Word* dst, const CopyDim& dim) {
  if (dim.dst_step == 1 && dim.src_step == 1) {
    std::memcpy(dst, src, sizeof(Word) * static_cast<size_t>(dim.extent));
  } else if (dim.dst_step == 1 && dim.src_step == 0) {
    std::fill_n(dst, dim.extent, *src);
  } else {
    for (int64_t i = 0; i < dim.extent; ++i) dst[i * dim.dst_step] = src[i * dim.src_step];
  }
}

// In square tiles, so that a transposition uses the cache lines it fetches.
template <typename Word>
void CopyPlane(const Word* src, Word* dst, const CopyDim& rows, const CopyDim& columns) {
  constexpr int64_t kTile = 16;
  for (int64_t c = 0; c < columns.extent; c += kTile) {
    const int64_t width = std::min(kTile, columns.extent - c);
    for (int64_t r = 0; r < rows.extent; ++r) {
      CopyRun(src + r * rows.src_step + c * columns.src_step, dst + r * rows.dst_step + c * columns.dst_step,
              {width, columns.src_step, columns.dst_step});
    }
  }
}

template <typename Word>
void CopyDims(const Word* src, Word* dst, const CopyDim* dims, size_t count) {
  if (count == 1) return CopyRun(src, dst, dims[0]);
  if (count == 2 && dims[1].src_step > 1) return CopyPlane(src, dst, dims[0], dims[1]);
  for (int64_t i = 0; i < dims[0].extent; ++i) {
    CopyDims(src + i * dims[0].src_step, dst + i * dims[0].dst_step, dims + 1, count - 1);
  }
}

template <typename Word>
class CopyKernel : public Kernel {
 public:
  // `zero_first`: the copies leave gaps in the result, which are zeros.
  CopyKernel(const KernelSpec& spec, std::vector<StridedCopy> copies, bool zero_first)
      : result_(static_cast<int>(spec.inputs.size())),
        zero_bytes_(zero_first ? static_cast<size_t>(spec.outputs[0].bytes()) : 0) {
    for (StridedCopy& copy : copies) {
      const bool empty =
          std::any_of(copy.dims.begin(), copy.dims.end(), [](const CopyDim& d) { return d.extent == 0; });
      if (empty) continue;
      copy.dims = Collapse(copy.dims);
      copies_.push_back(std::move(copy));
    }
  }

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    Word* const dst = static_cast<Word*>(operands[result_]);
    if (zero_bytes_ > 0) std::memset(dst, 0, zero_bytes_);
    for (const StridedCopy& copy : copies_) {
      const Word* const src = static_cast<const Word*>(operands[copy.input]);
      if (src == dst) continue;  // a reshape or copy in place
      CopyDims(src + copy.src_offset, dst + copy.dst_offset, copy.dims.data(), copy.dims.size());
    }
    return absl::OkStatus();
  }

 private:
  int result_;
  size_t zero_bytes_;
  std::vector<StridedCopy> copies_;
};

std::vector<CopyDim> Dims(const Shape& extents, const std::vector<int64_t>& src_steps,
                          const std::vector<int64_t>& dst_steps) {
  std::vector<CopyDim> dims;
  for (size_t i = 0; i < extents.size(); ++i) dims.push_back({extents[i], src_steps[i], dst_steps[i]});
  return dims;
}

template <typename Word>
absl::StatusOr<std::unique_ptr<Kernel>> MakeCopy(const KernelSpec& spec) {
  const int64_t count = spec.inputs[0].num_elements();
  PIPELOOM_CHECK(spec.outputs[0].num_elements() == count, spec.op, " of ", spec.inputs[0].ToString(), " to ",
                 spec.outputs[0].ToString());
  return std::make_unique<CopyKernel<Word>>(spec, std::vector<StridedCopy>{{0, 0, 0, {{count, 1, 1}}}}, false);
}

template <typename Word>
absl::StatusOr<std::unique_ptr<Kernel>> MakeBroadcast(const KernelSpec& spec) {
  const Shape& in = spec.inputs[0].shape;
  const Shape& out = spec.outputs[0].shape;
  PIPELOOM_CHECK(in.size() <= out.size(), "broadcast of ", ShapeToString(in), " to ", ShapeToString(out));
  std::vector<int64_t> steps = DenseSteps(in);
  for (size_t i = 0; i < in.size(); ++i) {
    const int64_t extent = out[out.size() - in.size() + i];
    PIPELOOM_CHECK(in[i] == extent || in[i] == 1, "broadcast of ", ShapeToString(in), " to ", ShapeToString(out));
    if (in[i] != extent) steps[i] = 0;
  }
  steps.insert(steps.begin(), out.size() - in.size(), 0);
  return std::make_unique<CopyKernel<Word>>(
      spec, std::vector<StridedCopy>{{0, 0, 0, Dims(out, steps, DenseSteps(out))}}, false);
}

template <typename Word>
absl::StatusOr<std::unique_ptr<Kernel>> MakeTranspose(const KernelSpec& spec) {
  const std::vector<int64_t> perm = GetInts(spec.attributes, "perm", {});
  const std::vector<int64_t> in_steps = DenseSteps(spec.inputs[0].shape);
  PIPELOOM_CHECK(perm.size() == in_steps.size(), perm.size(), " axes in perm of ", spec.inputs[0].ToString());
  std::vector<int64_t> steps;
  for (int64_t axis : perm) steps.push_back(in_steps[axis]);
  const Shape& out = spec.outputs[0].shape;
  return std::make_unique<CopyKernel<Word>>(
      spec, std::vector<StridedCopy>{{0, 0, 0, Dims(out, steps, DenseSteps(out))}}, false);
}

int64_t Offset(const std::vector<int64_t>& begin, const std::vector<int64_t>& steps) {
  PIPELOOM_CHECK(begin.size() == steps.size(), begin.size(), " offsets for ", steps.size(), " axes");
  int64_t offset = 0;
  for (size_t i = 0; i < begin.size(); ++i) offset += begin[i] * steps[i];
  return offset;
}

template <typename Word>
absl::StatusOr<std::unique_ptr<Kernel>> MakeSlice(const KernelSpec& spec) {
  const std::vector<int64_t> in_steps = DenseSteps(spec.inputs[0].shape);
  const Shape& out = spec.outputs[0].shape;
  const int64_t offset = Offset(GetInts(spec.attributes, "begin", {}), in_steps);
  return std::make_unique<CopyKernel<Word>>(
      spec, std::vector<StridedCopy>{{0, offset, 0, Dims(out, in_steps, DenseSteps(out))}}, false);
}

template <typename Word>
absl::StatusOr<std::unique_ptr<Kernel>> MakePad(const KernelSpec& spec) {
  const Shape& in = spec.inputs[0].shape;
  const std::vector<int64_t> out_steps = DenseSteps(spec.outputs[0].shape);
  const int64_t offset = Offset(GetInts(spec.attributes, "before", {}), out_steps);
  return std::make_unique<CopyKernel<Word>>(
      spec, std::vector<StridedCopy>{{0, 0, offset, Dims(in, DenseSteps(in), out_steps)}}, true);
}

template <typename Word>
absl::StatusOr<std::unique_ptr<Kernel>> MakeConcat(const KernelSpec& spec) {
  const std::vector<int64_t> out_steps = DenseSteps(spec.outputs[0].shape);
  int64_t axis = GetInt(spec.attributes, "axis", 0);
  if (axis < 0) axis += static_cast<int64_t>(out_steps.size());
  PIPELOOM_CHECK(axis >= 0 && axis < static_cast<int64_t>(out_steps.size()), "axis ", axis, " of concat");
  std::vector<StridedCopy> copies;
  int64_t place = 0;
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const Shape& in = spec.inputs[i].shape;
    copies.push_back({static_cast<int>(i), 0, place * out_steps[axis], Dims(in, DenseSteps(in), out_steps)});
    place += in[axis];
  }
  return std::make_unique<CopyKernel<Word>>(spec, std::move(copies), false);
}

template <typename Word>
void RegisterFor(DType dtype, KernelRegistry& registry) {
  RegisterCpuKernel(registry, "copy", dtype, &MakeCopy<Word>);
  RegisterCpuKernel(registry, "reshape", dtype, &MakeCopy<Word>);
  RegisterCpuKernel(registry, "broadcast_to", dtype, &MakeBroadcast<Word>);
  RegisterCpuKernel(registry, "transpose", dtype, &MakeTranspose<Word>);
  RegisterCpuKernel(registry, "slice", dtype, &MakeSlice<Word>);
  RegisterCpuKernel(registry, "pad", dtype, &MakePad<Word>);
  RegisterCpuKernel(registry, "concat", dtype, &MakeConcat<Word>);
}

}  // namespace

void RegisterLayoutKernels(KernelRegistry& registry) {
  RegisterFor<uint32_t>(DType::kFloat32, registry);
  RegisterFor<uint32_t>(DType::kInt32, registry);
  RegisterFor<uint64_t>(DType::kInt64, registry);
  RegisterFor<uint8_t>(DType::kBool, registry);
}

}  // namespace pipeloom
