// Times of single kernels on one compute thread: the products of the `mlp32` workload and what else its step runs.
// Operands stay in the cache as far as they fit; alternate and repeat before you believe a difference of less than 40
// %.

#include <memory>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/base/buffer.h"
#include "kernels/base/status_macros.h"
#include "kernels/cpu/cpu_kernels.h"

namespace pipeloom {
namespace {

TensorType F32(const Shape& shape) { return {DType::kFloat32, shape}; }

// Runs the kernel of `spec` again and again on small values; counters: GFLOP/s and GB/s of the given work a run.
void RunBenchmark(benchmark::State& state, const KernelSpec& spec, double flops, double bytes) {
  KernelRegistry registry;
  RegisterCpuKernels(registry);
  const ScopedComputeThreads threads(spec.threads);
  absl::StatusOr<std::unique_ptr<Kernel>> kernel = registry.Create(kCpuDevice, spec);
  PIPELOOM_CHECK(kernel.ok(), kernel.status().ToString());
  std::vector<Tensor> tensors;
  std::vector<void*> operands;
  for (const auto* types : {&spec.inputs, &spec.outputs}) {
    for (const TensorType& type : *types) {
      Tensor& tensor = tensors.emplace_back(type);
      for (int64_t i = 0; i < type.num_elements(); ++i) tensor.data<float>()[i] = 0.01f * static_cast<float>(i % 101);
      operands.push_back(tensor.data<float>());
    }
  }
  Buffer scratch((*kernel)->scratch_bytes());
  for (auto _ : state) {
    const absl::Status status = (*kernel)->Run(operands, scratch.data());
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
  }
  const auto rate = [](double work) {
    return benchmark::Counter(work * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
  };
  if (flops > 0) state.counters["GFLOP/s"] = rate(flops);
  if (bytes > 0) state.counters["GB/s"] = rate(bytes);
  state.SetLabel((*kernel)->implementation());
}

void AddMatmul(int64_t m, int64_t k, int64_t n, bool transpose_a, bool transpose_b, const std::string& epilogue,
               const std::string& kernel) {
  KernelSpec spec{"matmul",
                  {F32(transpose_a ? Shape{k, m} : Shape{m, k}), F32(transpose_b ? Shape{n, k} : Shape{k, n})},
                  {F32({m, n})},
                  {{"kernel", kernel}, {"transpose_a", transpose_a}, {"transpose_b", transpose_b}}};
  if (!epilogue.empty()) {
    spec.attributes["epilogue"] = epilogue;
    spec.inputs.push_back(F32({n}));
  }
  const std::string name =
      absl::StrCat("matmul/", m, "x", k, "x", n, transpose_a ? "/transpose_a" : "", transpose_b ? "/transpose_b" : "",
                   "/", epilogue, epilogue.empty() ? "" : "/", kernel);
  const double flops = 2.0 * static_cast<double>(m * k * n);
  benchmark::RegisterBenchmark(name.c_str(),
                               [spec, flops](benchmark::State& state) { RunBenchmark(state, spec, flops, 0); });
}

void AddLoop(const std::string& name, const KernelSpec& spec, double bytes) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [spec, bytes](benchmark::State& state) { RunBenchmark(state, spec, 0, bytes); });
}

void AddAll() {
  for (const char* kernel : {"rows", "brg", "gemm"}) {
    for (const int64_t rows : {8, 16, 32}) {
      AddMatmul(rows, 784, 512, false, false, "", kernel);
      AddMatmul(rows, 512, 512, false, false, "", kernel);
      AddMatmul(rows, 512, 512, false, true, "", kernel);
    }
    AddMatmul(8, 512, 512, false, false, "bias+relu", kernel);
    AddMatmul(8, 512, 10, false, false, "", kernel);
    AddMatmul(8, 10, 512, false, true, "", kernel);
    AddMatmul(32, 512, 10, false, false, "", kernel);
  }
  for (const char* kernel : {"brg", "gemm"}) {
    AddMatmul(784, 32, 512, true, false, "", kernel);
    AddMatmul(512, 32, 512, true, false, "", kernel);
    AddMatmul(512, 32, 10, true, false, "", kernel);
  }
  const TensorType weight = F32({784, 512});
  const double bytes = static_cast<double>(weight.bytes());
  AddLoop("sgd/784x512", {"sgd", {weight, weight}, {}, {{"lr", 0.01}}}, 3 * bytes);
  AddLoop("sgd/784x512/momentum", {"sgd", {weight, weight, weight}, {}, {{"lr", 0.01}, {"momentum", 0.9}}}, 5 * bytes);
  AddLoop("adam/784x512", {"adam", {weight, weight, weight, weight, F32({})}, {}, {{"lr", 0.01}}}, 7 * bytes);
  AddLoop("grad_accumulate/784x512", {"grad_accumulate", {weight}, {weight}}, 3 * bytes);
  AddLoop("reduce_sum/784x512/axis0", {"reduce_sum", {weight}, {F32({512})}, {{"axes", std::vector<int64_t>{0}}}},
          bytes);
  AddLoop("reduce_sum/784x512/all", {"reduce_sum", {weight}, {F32({})}}, bytes);
  AddLoop("transpose/784x512", {"transpose", {weight}, {F32({512, 784})}, {{"perm", std::vector<int64_t>{1, 0}}}},
          2 * bytes);
  const TensorType activation = F32({8, 512});
  AddLoop("relu/8x512", {"relu", {activation}, {activation}}, 2.0 * static_cast<double>(activation.bytes()));
  AddLoop("gelu/8x512", {"gelu", {activation}, {activation}}, 2.0 * static_cast<double>(activation.bytes()));
}

}  // namespace
}  // namespace pipeloom

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  pipeloom::AddAll();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
