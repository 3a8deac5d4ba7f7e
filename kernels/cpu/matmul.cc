#include "kernels/cpu/matmul.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/base/buffer.h"
#include "kernels/base/status_macros.h"
#include "kernels/cpu/eltwise.h"
#include "kernels/cpu/families.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/relu.h"
#include "kernels/cpu/row_product.h"

namespace pipeloom {
namespace {

// [m, k] x [k, n].
struct Product {
  int64_t m;
  int64_t k;
  int64_t n;
  bool transpose_a;
  bool transpose_b;
};

Product ProductOf(const KernelSpec& spec) {
  PIPELOOM_CHECK(spec.inputs.size() >= 2 && spec.inputs[0].rank() == 2 && spec.inputs[1].rank() == 2,
                 "matmul wants two operands of rank 2");
  Product p;
  p.transpose_a = GetBool(spec.attributes, "transpose_a", false);
  p.transpose_b = GetBool(spec.attributes, "transpose_b", false);
  const Shape& a = spec.inputs[0].shape;
  const Shape& b = spec.inputs[1].shape;
  p.m = a[p.transpose_a ? 1 : 0];
  p.k = a[p.transpose_a ? 0 : 1];
  p.n = b[p.transpose_b ? 0 : 1];
  PIPELOOM_CHECK(b[p.transpose_b ? 1 : 0] == p.k, "matmul of ", ShapeToString(a), " and ", ShapeToString(b));
  return p;
}

// One step of the epilogue: adding operand `operand`, an activation of oneDNN's, or relu where neither is set.
struct Step {
  int operand = -1;
  bool per_column = false;  // the operand is [n], not [m, n]
  const EltwiseActivation* activation = nullptr;

  bool is_relu() const { return operand < 0 && activation == nullptr; }
};

absl::StatusOr<std::vector<Step>> ParseEpilogue(const KernelSpec& spec) {
  const std::string text = GetString(spec.attributes, "epilogue", "");
  std::vector<Step> steps;
  int next_operand = 2;
  for (absl::string_view word : absl::StrSplit(text, '+', absl::SkipEmpty())) {
    Step step;
    step.activation = FindEltwiseActivation(word);
    if (word == "bias" || word == "residual") {
      step.operand = next_operand++;
      step.per_column = word == "bias";
    } else if (word != "relu" && step.activation == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "matmul has no epilogue step '", word, "' (in \"", text, "\"); there are bias, residual, relu, ",
          absl::StrJoin(kEltwiseActivations, ", ",
                        [](std::string* out, const EltwiseActivation& row) { absl::StrAppend(out, row.name); })));
    }
    steps.push_back(step);
  }
  PIPELOOM_CHECK(static_cast<int>(spec.inputs.size()) == next_operand, "matmul with epilogue \"", text, "\" wants ",
                 next_operand, " operands, not ", spec.inputs.size());
  return steps;
}

// x[r, c] += addend[r * row_step + c].
struct AddRowsBody {
  PIPELOOM_LOOP Run(float* x, const float* addend, int64_t row_step, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r, x += columns, addend += row_step) {
      PIPELOOM_INDEPENDENT
      for (int64_t c = 0; c < columns; ++c) x[c] += addend[c];
    }
  }
};

// The product, with the steps of the epilogue up to the first relu in oneDNN's own, and the others over the result
// while it is in the cache: oneDNN's relu would swallow NaN (eltwise.h).
class MatmulKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec);

  absl::Status Run(absl::Span<void* const> operands, void* scratch) override;
  size_t scratch_bytes() const override { return scratch_bytes_; }
  std::string implementation() const override { return implementation_; }

 private:
  struct Tail {
    Step step;
    OneDnnCall activation;
  };

  absl::Status MakeProduct(const KernelSpec& spec, const std::string& wanted, const std::vector<Step>& steps);
  absl::Status MakeTail(const std::vector<Step>& steps, int threads);

  Product product_;
  int result_ = 0;  // place of the result among the operands
  RowProduct rows_ = nullptr;
  OneDnnCall call_;  // where there is no rows_
  std::vector<Tail> tail_;
  Buffer zeros_;  // stands for both factors where k is 0
  std::vector<void*> operands_with_zeros_;
  Loop<const float*, float*, int64_t> relu_ = BestVariant<ReluBody>(&ReluBody::Run);
  Loop<float*, const float*, int64_t, int64_t, int64_t> add_rows_ = BestVariant<AddRowsBody>(&AddRowsBody::Run);
  size_t scratch_bytes_ = 0;
  std::string implementation_ = "loop";
};

absl::StatusOr<std::unique_ptr<Kernel>> MatmulKernel::Make(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const std::vector<Step> steps, ParseEpilogue(spec));
  auto kernel = std::make_unique<MatmulKernel>();
  Product& p = kernel->product_;
  p = ProductOf(spec);
  kernel->result_ = static_cast<int>(spec.inputs.size());
  if (p.m == 0 || p.n == 0) return kernel;
  const std::string wanted = GetString(spec.attributes, "kernel", "");
  if (wanted == "rows" && !p.transpose_a) kernel->rows_ = FindRowProduct(p.transpose_b);
  if (kernel->rows_ != nullptr) {
    kernel->implementation_ = "rows:avx512";
    RETURN_IF_ERROR(kernel->MakeTail(steps, spec.threads));
    return kernel;
  }
  if (p.k == 0) {  // a sum of nothing, computed as one term of zeros: oneDNN would leave the result as it was
    p.k = 1;
    kernel->zeros_ = Buffer(sizeof(float) * static_cast<size_t>(std::max(p.m, p.n)));
    kernel->operands_with_zeros_.resize(spec.inputs.size() + 1);
  }
  const auto relu = std::find_if(steps.begin(), steps.end(), [](const Step& step) { return step.is_relu(); });
  RETURN_IF_ERROR(kernel->MakeProduct(spec, wanted == "rows" ? "brg" : wanted, {steps.begin(), relu}));
  RETURN_IF_ERROR(kernel->MakeTail({relu, steps.end()}, spec.threads));
  return kernel;
}

// Moves `desc` to the implementation wanted: the first whose name starts with `prefix`, else the first that is not the
// reference one. By name, since places in oneDNN's list shift once a primitive is in its cache. A walk cannot go back,
// so `create` makes each descriptor anew.
template <typename Create>
dnnl::matmul::primitive_desc FindImplementation(const std::string& prefix, Create create) {
  const auto walk = [&](auto wanted) {
    dnnl::matmul::primitive_desc desc = create();
    bool found = wanted(absl::string_view(desc.impl_info_str()));
    while (!found && desc.next_impl()) found = wanted(absl::string_view(desc.impl_info_str()));
    return std::make_pair(found, desc);
  };
  if (!prefix.empty()) {
    auto [found, desc] = walk([&](absl::string_view name) { return absl::StartsWith(name, prefix); });
    if (found) return desc;
  }
  auto [found, desc] = walk([](absl::string_view name) { return !absl::StartsWith(name, "ref"); });
  return found ? desc : create();
}

absl::Status MatmulKernel::MakeProduct(const KernelSpec& spec, const std::string& wanted,
                                       const std::vector<Step>& steps) {
  const Product& p = product_;
  const dnnl::memory::desc a = DenseDesc({p.m, p.k}, p.transpose_a);
  const dnnl::memory::desc b = DenseDesc({p.k, p.n}, p.transpose_b);
  const dnnl::memory::desc c = DenseDesc({p.m, p.n});
  dnnl::post_ops post_ops;
  std::vector<OneDnnCall::Argument> arguments = {
      {DNNL_ARG_SRC, a, 0}, {DNNL_ARG_WEIGHTS, b, 1}, {DNNL_ARG_DST, c, result_}};
  for (const Step& step : steps) {
    if (step.activation != nullptr) {
      post_ops.append_eltwise(step.activation->algorithm, 0.f, 0.f);
    } else {
      const dnnl::memory::desc addend = DenseDesc({step.per_column ? 1 : p.m, p.n});
      arguments.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(post_ops.len()) | DNNL_ARG_SRC_1, addend, step.operand});
      post_ops.append_binary(dnnl::algorithm::binary_add, addend);
    }
  }
  const std::string what = absl::StrCat("matmul ", p.m, "x", p.k, "x", p.n);
  ASSIGN_OR_RETURN(call_, MakeWithOneDnn(what, spec.threads, [&](const dnnl::engine& engine) {
                     dnnl::primitive_attr attr = UserScratchpad();
                     attr.set_post_ops(post_ops);
                     const dnnl::matmul::primitive_desc desc = FindImplementation(
                         wanted, [&] { return dnnl::matmul::primitive_desc(engine, a, b, c, attr); });
                     return OneDnnCall(engine, dnnl::matmul(desc), desc, arguments);
                   }));
  implementation_ = call_.implementation();
  scratch_bytes_ = call_.scratch_bytes();
  return absl::OkStatus();
}

absl::Status MatmulKernel::MakeTail(const std::vector<Step>& steps, int threads) {
  for (const Step& step : steps) {
    Tail tail{step, {}};
    if (step.activation != nullptr) {
      ASSIGN_OR_RETURN(tail.activation,
                       MakeEltwiseForward(*step.activation, product_.m * product_.n, threads, result_, result_));
      scratch_bytes_ = std::max(scratch_bytes_, tail.activation.scratch_bytes());
    }
    tail_.push_back(std::move(tail));
  }
  return absl::OkStatus();
}

absl::Status MatmulKernel::Run(absl::Span<void* const> operands, void* scratch) {
  const int64_t m = product_.m;
  const int64_t n = product_.n;
  if (m == 0 || n == 0) return absl::OkStatus();
  if (zeros_.size() > 0) {
    std::copy(operands.begin(), operands.end(), operands_with_zeros_.begin());
    operands_with_zeros_[0] = operands_with_zeros_[1] = zeros_.data();
    operands = operands_with_zeros_;
  }
  float* const result = static_cast<float*>(operands[result_]);
  if (rows_ != nullptr) {
    rows_(static_cast<const float*>(operands[0]), static_cast<const float*>(operands[1]), result, m, product_.k, n);
  } else {
    RETURN_IF_ERROR(call_.Run(operands, scratch));
  }
  for (Tail& tail : tail_) {
    if (tail.step.is_relu()) {
      relu_(result, result, m * n);
    } else if (tail.step.activation != nullptr) {
      RETURN_IF_ERROR(tail.activation.Run(operands, scratch));
    } else {
      add_rows_(result, static_cast<const float*>(operands[tail.step.operand]), tail.step.per_column ? 0 : n, m, n);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeMatmulKernel(const KernelSpec& spec) { return MatmulKernel::Make(spec); }

void RegisterMatmulKernels(KernelRegistry& registry) {
  RegisterCpuKernel(registry, "matmul", DType::kFloat32, &MakeMatmulKernel);
}

}  // namespace pipeloom
