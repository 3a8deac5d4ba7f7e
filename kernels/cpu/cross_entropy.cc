#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "kernels/cpu/families.h"

namespace pipeloom {
namespace {

// What both kernels know: rows and classes of the logits, and how labels are read.
class CrossEntropy {
 public:
  explicit CrossEntropy(const TensorType& logits, const AttributeMap& attributes)
      : rows_(logits.shape[0]),
        classes_(logits.shape[1]),
        mean_(GetString(attributes, "reduction", "mean") == "mean"),
        ignore_index_(GetInt(attributes, "ignore_index", -100)) {}

  int64_t rows() const { return rows_; }
  int64_t classes() const { return classes_; }
  bool ignored(int32_t label) const { return label == ignore_index_; }

  // What the sum over the labels that count is divided by: their number for the mean, else 1. 1 also where all are
  // ignored: such a micro-batch has nothing to say, which is no NaN.
  absl::StatusOr<int64_t> Divisor(const int32_t* labels) const {
    int64_t counted = 0;
    for (int64_t i = 0; i < rows_; ++i) {
      if (ignored(labels[i])) continue;
      if (labels[i] < 0 || labels[i] >= classes_) return OutOfRange(labels[i], i);
      ++counted;
    }
    return mean_ ? std::max<int64_t>(counted, 1) : 1;
  }

 private:
  absl::Status OutOfRange(int32_t label, int64_t position) const {
    return absl::OutOfRangeError(absl::StrCat("softmax_cross_entropy: label ", label, " at position ", position,
                                              " is not in [0, ", classes_, "); correct the label, give logits of more ",
                                              "classes, or mark it to be ignored with ", ignore_index_));
  }

  int64_t rows_;
  int64_t classes_;
  bool mean_;
  int64_t ignore_index_;
};

// Per row max + log(sum of exp(x - max)) - x[label], class by class and row by row in double, rounded once at the end.
class LossKernel : public Kernel {
 public:
  explicit LossKernel(const KernelSpec& spec) : rule_(spec.inputs[0], spec.attributes) {}

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    const float* logits = static_cast<const float*>(operands[0]);
    const int32_t* labels = static_cast<const int32_t*>(operands[1]);
    ASSIGN_OR_RETURN(const int64_t divisor, rule_.Divisor(labels));
    double loss = 0;
    for (int64_t i = 0; i < rule_.rows(); ++i, logits += rule_.classes()) {
      if (rule_.ignored(labels[i])) continue;
      const float max = *std::max_element(logits, logits + rule_.classes());
      double sum = 0;
      for (int64_t c = 0; c < rule_.classes(); ++c) sum += std::exp(logits[c] - max);
      loss += std::log(sum) + (static_cast<double>(max) - logits[labels[i]]);
    }
    *static_cast<float*>(operands[2]) = static_cast<float>(loss / static_cast<double>(divisor));
    return absl::OkStatus();
  }

 private:
  CrossEntropy rule_;
};

// (softmax(logits) - one_hot(label)) * dloss / divisor; zero in ignored rows.
class LossGradKernel : public Kernel {
 public:
  explicit LossGradKernel(const KernelSpec& spec) : rule_(spec.inputs[1], spec.attributes) {}

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    const float* logits = static_cast<const float*>(operands[1]);
    const int32_t* labels = static_cast<const int32_t*>(operands[2]);
    float* out = static_cast<float*>(operands[3]);
    ASSIGN_OR_RETURN(const int64_t divisor, rule_.Divisor(labels));
    const float scale = *static_cast<const float*>(operands[0]) / static_cast<float>(divisor);
    const int64_t classes = rule_.classes();
    for (int64_t i = 0; i < rule_.rows(); ++i, logits += classes, out += classes) {
      if (rule_.ignored(labels[i])) {
        std::fill_n(out, classes, 0.f);
      } else {
        GradRow(logits, labels[i], scale, out);
      }
    }
    return absl::OkStatus();
  }

 private:
  void GradRow(const float* logits, int32_t label, float scale, float* out) const {
    const int64_t classes = rule_.classes();
    const float max = *std::max_element(logits, logits + classes);
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += out[c] = std::exp(logits[c] - max);
    const float inverse = static_cast<float>(1 / sum);
    for (int64_t c = 0; c < classes; ++c) out[c] = out[c] * inverse * scale;
    out[label] -= scale;
  }

  CrossEntropy rule_;
};

}  // namespace

void RegisterCrossEntropyKernels(KernelRegistry& registry) {
  RegisterCpuKernel(registry, "softmax_cross_entropy", DType::kFloat32,
                    [](const KernelSpec& spec) { return std::make_unique<LossKernel>(spec); });
  RegisterCpuKernel(registry, "softmax_cross_entropy_grad", DType::kFloat32,
                    [](const KernelSpec& spec) { return std::make_unique<LossGradKernel>(spec); });
}

}  // namespace pipeloom
