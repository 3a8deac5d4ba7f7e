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
template <typename Label>
class CrossEntropy {
 public:
  CrossEntropy(const TensorType& logits, const AttributeMap& attributes)
      : rows_(logits.shape[0]),
        classes_(logits.shape[1]),
        mean_(GetString(attributes, "reduction", "mean") == "mean"),
        ignore_index_(GetInt(attributes, "ignore_index", -100)) {}

  int64_t rows() const { return rows_; }
  int64_t classes() const { return classes_; }
  bool ignored(Label label) const { return label == ignore_index_; }

  // What the sum over the labels that count is divided by: `given` where there is one, else their number for the mean,
  // else 1. 1 also where all are ignored: such a micro-batch has nothing to say, which is no NaN.
  absl::StatusOr<double> Divisor(const Label* labels, const float* given) const {
    int64_t counted = 0;
    for (int64_t i = 0; i < rows_; ++i) {
      if (ignored(labels[i])) continue;
      if (labels[i] < 0 || labels[i] >= classes_) return OutOfRange(labels[i], i);
      ++counted;
    }
    if (given != nullptr) return *given;
    return mean_ ? static_cast<double>(std::max<int64_t>(counted, 1)) : 1.0;
  }

 private:
  absl::Status OutOfRange(int64_t label, int64_t position) const {
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
template <typename Label>
class LossKernel : public Kernel {
 public:
  explicit LossKernel(const KernelSpec& spec)
      : rule_(spec.inputs[0], spec.attributes), divisor_given_(spec.inputs.size() == 3) {}

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    const float* logits = static_cast<const float*>(operands[0]);
    const Label* labels = static_cast<const Label*>(operands[1]);
    const float* given = divisor_given_ ? static_cast<const float*>(operands[2]) : nullptr;
    ASSIGN_OR_RETURN(const double divisor, rule_.Divisor(labels, given));
    double loss = 0;
    for (int64_t i = 0; i < rule_.rows(); ++i, logits += rule_.classes()) {
      if (rule_.ignored(labels[i])) continue;
      const float max = *std::max_element(logits, logits + rule_.classes());
      double sum = 0;
      for (int64_t c = 0; c < rule_.classes(); ++c) sum += std::exp(logits[c] - max);
      loss += std::log(sum) + (static_cast<double>(max) - logits[labels[i]]);
    }
    *static_cast<float*>(operands.back()) = static_cast<float>(loss / divisor);
    return absl::OkStatus();
  }

 private:
  CrossEntropy<Label> rule_;
  bool divisor_given_;
};

// (softmax(logits) - one_hot(label)) * dloss / divisor; zero in ignored rows.
template <typename Label>
class LossGradKernel : public Kernel {
 public:
  explicit LossGradKernel(const KernelSpec& spec)
      : rule_(spec.inputs[1], spec.attributes), divisor_given_(spec.inputs.size() == 4) {}

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    const float* logits = static_cast<const float*>(operands[1]);
    const Label* labels = static_cast<const Label*>(operands[2]);
    const float* given = divisor_given_ ? static_cast<const float*>(operands[3]) : nullptr;
    float* out = static_cast<float*>(operands.back());
    ASSIGN_OR_RETURN(const double divisor, rule_.Divisor(labels, given));
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
  void GradRow(const float* logits, Label label, float scale, float* out) const {
    const int64_t classes = rule_.classes();
    const float max = *std::max_element(logits, logits + classes);
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += out[c] = std::exp(logits[c] - max);
    const float inverse = static_cast<float>(1 / sum);
    for (int64_t c = 0; c < classes; ++c) out[c] = out[c] * inverse * scale;
    out[label] -= scale;
  }

  CrossEntropy<Label> rule_;
  bool divisor_given_;
};

// How many labels of the whole step count, over the number of micro-batches: what each micro-batch divides its sum by,
// so that the mean of their losses is the mean over all labels. The count is exact, and so is the quotient where the
// micro-batches have equally many. 1 where there are none.
template <typename Label>
class LabelsPerMicroBatchKernel : public Kernel {
 public:
  explicit LabelsPerMicroBatchKernel(const KernelSpec& spec)
      : labels_(spec.inputs[0].num_elements()),
        ignore_index_(GetInt(spec.attributes, "ignore_index", -100)),
        micro_batches_(static_cast<double>(GetInt(spec.attributes, "count", 1))) {}

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    const Label* labels = static_cast<const Label*>(operands[0]);
    int64_t counted = 0;
    for (int64_t i = 0; i < labels_; ++i) counted += labels[i] == ignore_index_ ? 0 : 1;
    *static_cast<float*>(operands[1]) =
        counted == 0 ? 1.f : static_cast<float>(static_cast<double>(counted) / micro_batches_);
    return absl::OkStatus();
  }

 private:
  int64_t labels_;
  int64_t ignore_index_;
  double micro_batches_;
};

template <template <typename> class KernelOf, int kLabels>
absl::StatusOr<std::unique_ptr<Kernel>> MakeForLabels(const KernelSpec& spec) {
  if (spec.inputs[kLabels].dtype == DType::kInt64) return std::make_unique<KernelOf<int64_t>>(spec);
  PIPELOOM_CHECK(spec.inputs[kLabels].dtype == DType::kInt32, spec.op, " with labels ",
                 spec.inputs[kLabels].ToString());
  return std::make_unique<KernelOf<int32_t>>(spec);
}

}  // namespace

void RegisterCrossEntropyKernels(KernelRegistry& registry) {
  RegisterCpuKernel(registry, "softmax_cross_entropy", DType::kFloat32, &MakeForLabels<LossKernel, 1>);
  RegisterCpuKernel(registry, "softmax_cross_entropy_grad", DType::kFloat32, &MakeForLabels<LossGradKernel, 2>);
  RegisterCpuKernel(registry, "labels_per_micro_batch", DType::kFloat32, &MakeForLabels<LabelsPerMicroBatchKernel, 0>);
}

}  // namespace pipeloom
