#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/status_macros.h"
#include "kernels/cpu/families.h"

namespace pipeloom {
namespace {

// Of a longer axis the first and last so many are printed, and "..." between them.
constexpr int64_t kEdge = 3;
// The most characters of a number with the blank before it.
constexpr size_t kNumber = 24;

constexpr const char* TypeName(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "Float32";
    case DType::kInt32:
      return "Int32";
    case DType::kInt64:
      return "Int64";
    case DType::kBool:
      return "Bool";
  }
  return "";
}

// Writes a text and a tensor as MindSpore prints it:
//
//   out is:
//   Tensor(shape=[2, 2], dtype=Float32, value=
//   [[ 1.00000000e+00 -5.00000000e-01]
//    [ 0.00000000e+00  2.00000000e+00]])
//
// All at once, so that lines of ranks do not mix. The room for it is taken when the kernel is made.
class PrintKernel : public Kernel {
 public:
  explicit PrintKernel(const KernelSpec& spec) : type_(spec.inputs[0]) {
    const std::string text = GetString(spec.attributes, "text", "");
    head_ = absl::StrCat(text, text.empty() ? "" : "\n", "Tensor(shape=[", absl::StrJoin(type_.shape, ", "),
                         "], dtype=", TypeName(type_.dtype), ", value=\n");
    size_t numbers = 1;
    for (int64_t extent : type_.shape) {
      numbers *= static_cast<size_t>(std::min<int64_t>(std::max<int64_t>(extent, 1), 2 * kEdge + 1));
    }
    out_.reserve(head_.size() + numbers * (kNumber + 4 * type_.shape.size() + 8) + kNumber);
  }

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    out_ = head_;
    AppendAxis(operands[0], 0, 0);
    out_ += ")\n";
    std::fflush(stdout);  // what the program has printed before comes before
    for (size_t begin = 0; begin < out_.size();) {
      const ssize_t written = ::write(STDOUT_FILENO, out_.data() + begin, out_.size() - begin);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return absl::UnavailableError("print: standard output cannot be written");
      begin += static_cast<size_t>(written);
    }
    return absl::OkStatus();
  }

 private:
  // The elements from `place` on that share their first `axis` indices.
  void AppendAxis(const void* data, int axis, int64_t place) {
    if (axis == type_.rank()) return AppendNumber(data, place);
    const bool innermost = axis + 1 == type_.rank();
    const int64_t extent = type_.shape[static_cast<size_t>(axis)];
    int64_t stride = 1;
    for (int i = axis + 1; i < type_.rank(); ++i) stride *= type_.shape[static_cast<size_t>(i)];
    out_ += '[';
    for (int64_t i = 0; i < extent; ++i) {
      if (i > 0) StartNext(axis, innermost);
      if (extent > 2 * kEdge && i == kEdge) {
        out_ += "...";
        i = extent - kEdge - 1;
        continue;
      }
      AppendAxis(data, axis + 1, place + i * stride);
    }
    out_ += ']';
  }

  void StartNext(int axis, bool innermost) {
    if (innermost) {
      out_ += ' ';
    } else {
      out_ += '\n';
      out_.append(static_cast<size_t>(axis) + 1, ' ');
    }
  }

  void AppendNumber(const void* data, int64_t place) {
    char text[kNumber];
    switch (type_.dtype) {
      case DType::kFloat32:
        std::snprintf(text, sizeof(text), "% .8e", static_cast<double>(static_cast<const float*>(data)[place]));
        break;
      case DType::kInt32:
        std::snprintf(text, sizeof(text), "%d", static_cast<const int32_t*>(data)[place]);
        break;
      case DType::kInt64:
        std::snprintf(text, sizeof(text), "%lld", static_cast<long long>(static_cast<const int64_t*>(data)[place]));
        break;
      case DType::kBool:
        std::snprintf(text, sizeof(text), "%s", static_cast<const uint8_t*>(data)[place] != 0 ? "True" : "False");
        break;
    }
    out_ += text;
  }

  TensorType type_;
  std::string head_;
  std::string out_;
};

}  // namespace

void RegisterPrintKernels(KernelRegistry& registry) {
  for (const DTypeInfo& info : kDTypes) {
    RegisterCpuKernel(registry, "print", info.dtype,
                      [](const KernelSpec& spec) { return std::make_unique<PrintKernel>(spec); });
  }
}

}  // namespace pipeloom
