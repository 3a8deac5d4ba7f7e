#include "tests/kernels/cases.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"

namespace pipeloom {
namespace {

TensorType F32(const Shape& shape) { return {DType::kFloat32, shape}; }

class CaseList {
 public:
  void Add(std::string op, std::vector<TensorType> inputs, std::vector<TensorType> outputs,
           AttributeMap attributes = {}, bool in_place = false) {
    cases_.push_back(
        {KernelSpec{std::move(op), std::move(inputs), std::move(outputs), std::move(attributes)}, in_place});
  }
  std::vector<KernelCase> Take() { return std::move(cases_); }

 private:
  std::vector<KernelCase> cases_;
};

const std::vector<Shape>& PlainShapes() {
  static const auto* const shapes =
      new std::vector<Shape>{{}, {1}, {3}, {17}, {1023}, {3, 17}, {2, 3, 5}, {33, 31}, {0}, {0, 5}};
  return *shapes;
}

void AddMatmul(CaseList& list, int64_t m, int64_t k, int64_t n, bool ta, bool tb, const std::string& epilogue,
               const std::string& kernel) {
  std::vector<TensorType> inputs = {F32(ta ? Shape{k, m} : Shape{m, k}), F32(tb ? Shape{n, k} : Shape{k, n})};
  const size_t bias = epilogue.find("bias");
  const size_t residual = epilogue.find("residual");
  if (bias < residual) inputs.push_back(F32({n}));
  if (residual != std::string::npos) inputs.push_back(F32({m, n}));
  if (bias != std::string::npos && residual < bias) inputs.push_back(F32({n}));
  AttributeMap attributes = {{"transpose_a", ta}, {"transpose_b", tb}, {"group", int64_t{4}}};
  if (!epilogue.empty()) attributes["epilogue"] = epilogue;
  if (!kernel.empty()) attributes["kernel"] = kernel;
  list.Add("matmul", std::move(inputs), {F32({m, n})}, std::move(attributes));
}

void AddMatmuls(CaseList& list) {
  const std::vector<std::vector<int64_t>> sizes = {{1, 1, 1},   {3, 17, 1},  {1, 17, 3},    {17, 1, 3},
                                                   {8, 64, 10}, {17, 33, 5}, {3, 1023, 17}, {33, 7, 1023},
                                                   {0, 3, 5},   {3, 0, 5},   {3, 5, 0}};
  for (const auto& s : sizes) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        for (const char* kernel : {"", "brg", "rows"}) AddMatmul(list, s[0], s[1], s[2], ta, tb, "", kernel);
        for (const char* kernel : {"brg", "rows"}) {
          AddMatmul(list, s[0], s[1], s[2], ta, tb, "bias+residual+relu", kernel);
        }
      }
    }
    for (const char* epilogue :
         {"bias", "residual", "relu", "gelu_tanh", "gelu_erf", "tanh", "sigmoid", "bias+relu", "bias+gelu_tanh",
          "bias+gelu_erf+residual", "residual+bias", "relu+bias", "relu+residual+tanh", "bias+sigmoid+relu+residual"}) {
      for (const char* kernel : {"brg", "rows"}) AddMatmul(list, s[0], s[1], s[2], false, false, epilogue, kernel);
    }
  }
}

void AddBatchMatmuls(CaseList& list) {
  struct Sizes {
    Shape batch;
    int64_t m, k, n;
  };
  const std::vector<Sizes> cases = {{{}, 3, 5, 7},     {{1}, 17, 33, 5}, {{3}, 8, 64, 70},  {{2, 3}, 5, 17, 3},
                                    {{2, 3}, 1, 1, 1}, {{0}, 3, 5, 7},   {{2, 0}, 3, 5, 7}, {{2}, 0, 3, 5},
                                    {{2}, 3, 0, 5},    {{2}, 3, 5, 0}};
  for (const Sizes& s : cases) {
    const auto matrices = [&](int64_t rows, int64_t columns) {
      Shape shape = s.batch;
      shape.insert(shape.end(), {rows, columns});
      return F32(shape);
    };
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        for (const char* kernel : {"brg", "rows"}) {
          list.Add("batch_matmul",
                   {ta ? matrices(s.k, s.m) : matrices(s.m, s.k), tb ? matrices(s.n, s.k) : matrices(s.k, s.n)},
                   {matrices(s.m, s.n)}, {{"transpose_a", ta}, {"transpose_b", tb}, {"kernel", std::string(kernel)}});
        }
      }
    }
  }
}

void AddElementwise(CaseList& list) {
  struct Broadcast {
    Shape a, b, out;
  };
  std::vector<Broadcast> broadcasts = {
      {{3, 17}, {}, {3, 17}},
      {{}, {3, 17}, {3, 17}},
      {{3, 17}, {17}, {3, 17}},
      {{17}, {3, 17}, {3, 17}},
      {{3, 17}, {3, 1}, {3, 17}},
      {{3, 1}, {17}, {3, 17}},
      {{1, 1}, {1}, {1, 1}},
      {{2, 1, 5}, {1, 3, 1}, {2, 3, 5}},
      {{4, 3, 2, 5}, {3, 1, 5}, {4, 3, 2, 5}},
      {{0, 4}, {4}, {0, 4}},
      {{0}, {1}, {0}},
      {{2, 3, 1, 1}, {2, 3, 4, 5}, {2, 3, 4, 5}},
  };
  for (const Shape& shape : PlainShapes()) broadcasts.push_back({shape, shape, shape});
  for (const Broadcast& s : broadcasts) {
    for (const char* op : {"add", "sub", "mul", "div"})
      list.Add(op, {F32(s.a), F32(s.b)}, {F32(s.out)}, {}, s.a == s.out);
    for (const char* op : {"maximum", "minimum", "pow"}) {
      list.Add(op, {F32(s.a), F32(s.b)}, {F32(s.out)}, {}, s.a == s.out);
    }
    for (const char* op : {"add", "sub", "mul", "maximum", "minimum"}) {
      for (const DType t : {DType::kInt32, DType::kInt64}) {
        list.Add(op, {{t, s.a}, {t, s.b}}, {{t, s.out}}, {}, s.a == s.out);
      }
    }
  }
}

const std::vector<std::array<Shape, 3>>& ThreeBroadcasts() {
  static const auto* const broadcasts = new std::vector<std::array<Shape, 3>>{
      {{{3, 17}, {3, 17}, {3, 17}}}, {{{3, 17}, {}, {}}}, {{{3, 1}, {17}, {3, 17}}},
      {{{17}, {3, 17}, {}}},         {{{}, {}, {}}},      {{{2, 1, 5}, {1, 3, 1}, {5}}},
      {{{0, 4}, {4}, {1}}}};
  return *broadcasts;
}

Shape BroadcastOf(const std::array<Shape, 3>& shapes) {
  Shape out;
  for (const Shape& shape : shapes) {
    if (shape.size() > out.size()) out.insert(out.begin(), shape.size() - out.size(), 1);
    for (size_t back = 1; back <= shape.size(); ++back) {
      int64_t& extent = out[out.size() - back];
      if (extent == 1) extent = shape[shape.size() - back];
    }
  }
  return out;
}

void AddLogicals(CaseList& list) {
  const auto boolean = [](const Shape& shape) { return TensorType{DType::kBool, shape}; };
  for (const std::array<Shape, 3>& shapes : ThreeBroadcasts()) {
    const auto& [a, b, c] = shapes;
    const Shape pair = BroadcastOf({a, b, {}});
    for (const DTypeInfo& info : kDTypes) {
      for (const char* op : {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}) {
        list.Add(op, {{info.dtype, a}, {info.dtype, b}}, {boolean(pair)});
      }
      const TensorType out{info.dtype, BroadcastOf(shapes)};
      list.Add("where", {boolean(a), {info.dtype, b}, {info.dtype, c}}, {out});
      for (const DTypeInfo& to : kDTypes) {
        list.Add("cast", {{info.dtype, a}}, {{to.dtype, a}}, {{"to", std::string(to.name)}});
      }
    }
    for (const char* op : {"logical_and", "logical_or"}) {
      list.Add(op, {boolean(a), boolean(b)}, {boolean(pair)}, {}, a == pair);
    }
    list.Add("logical_not", {boolean(a)}, {boolean(a)}, {}, true);
  }
}

void AddDropouts(CaseList& list) {
  const TensorType counter{DType::kInt64, {}};
  for (const Shape& shape : PlainShapes()) {
    for (const double p : {0.0, 0.25, 0.9}) {
      list.Add("dropout", {F32(shape), counter, counter}, {F32(shape)},
               {{"p", p}, {"seed", int64_t{-5}}, {"site", int64_t{1} << 40}}, true);
    }
  }
}

void AddMaps(CaseList& list) {
  for (const Shape& shape : PlainShapes()) {
    const TensorType t = F32(shape);
    for (const char* op : {"neg", "relu", "tanh", "sigmoid", "gelu"}) list.Add(op, {t}, {t}, {}, true);
    for (const char* op :
         {"exp", "log", "sqrt", "rsqrt", "square", "reciprocal", "abs", "erf", "sin", "cos", "sign", "floor"}) {
      list.Add(op, {t}, {t}, {}, true);
    }
    for (const char* op : {"relu_grad", "tanh_grad", "sigmoid_grad", "gelu_grad"}) list.Add(op, {t, t}, {t}, {}, true);
    list.Add("gelu", {t}, {t}, {{"approximate", false}}, true);
    list.Add("gelu_grad", {t, t}, {t}, {{"approximate", false}}, true);
    list.Add("grad_accumulate", {t}, {t});
  }
}

void AddLosses(CaseList& list) {
  for (const char* reduction : {"mean", "sum"}) {
    for (const int64_t rows : {0, 1, 3, 17}) {
      for (const int64_t classes : {1, 10, 1023}) {
        for (const int64_t ignore : {-100, 0}) {
          const AttributeMap attributes = {{"reduction", std::string(reduction)}, {"ignore_index", ignore}};
          for (const DType id : {DType::kInt32, DType::kInt64}) {
            const TensorType logits = F32({rows, classes});
            const TensorType labels{id, {rows}};
            list.Add("softmax_cross_entropy", {logits, labels}, {F32({})}, attributes);
            list.Add("softmax_cross_entropy_grad", {F32({}), logits, labels}, {logits}, attributes);
            if (std::string(reduction) != "mean") continue;
            list.Add("softmax_cross_entropy", {logits, labels, F32({})}, {F32({})}, attributes);
            list.Add("softmax_cross_entropy_grad", {F32({}), logits, labels, F32({})}, {logits}, attributes);
          }
        }
      }
    }
    for (const Shape& shape : PlainShapes()) {
      const AttributeMap attributes = {{"reduction", std::string(reduction)}};
      list.Add("mse", {F32(shape), F32(shape)}, {F32({})}, attributes);
      list.Add("mse_grad", {F32({}), F32(shape), F32(shape)}, {F32(shape)}, attributes);
    }
  }
}

void AddLabelCounts(CaseList& list) {
  for (const Shape& shape : PlainShapes()) {
    for (const DType id : {DType::kInt32, DType::kInt64}) {
      list.Add("labels_per_micro_batch", {{id, shape}}, {F32({})},
               {{"count", int64_t{4}}, {"ignore_index", int64_t{3}}});
    }
  }
}

// One for each type: a test of what it prints is in print_test.
void AddPrints(CaseList& list) {
  for (const DTypeInfo& info : kDTypes) {
    list.Add("print", {{info.dtype, {2}}}, {}, {{"text", std::string("conformance:")}});
  }
}

void AddNormalizations(CaseList& list) {
  for (const Shape& shape : PlainShapes()) {
    if (shape.empty()) continue;
    const TensorType t = F32(shape);
    for (const int64_t axis : {int64_t{-1}, static_cast<int64_t>(shape.size()) - 1}) {
      for (const char* op : {"softmax", "log_softmax"}) list.Add(op, {t}, {t}, {{"axis", axis}});
      for (const char* op : {"softmax_grad", "log_softmax_grad"}) list.Add(op, {t, t}, {t}, {{"axis", axis}});
    }
    const TensorType along = F32({shape.back()});
    for (const AttributeMap& attributes : {AttributeMap{}, AttributeMap{{"eps", 1e-2}}}) {
      list.Add("layer_norm", {t, along, along}, {t}, attributes);
      list.Add("layer_norm_grad_x", {t, t, along}, {t}, attributes);
      list.Add("layer_norm_grad_gamma", {t, t}, {along}, attributes);
    }
  }
  list.Add("layer_norm", {F32({5, 0}), F32({0}), F32({0})}, {F32({5, 0})});
  for (const char* op : {"softmax", "log_softmax"}) list.Add(op, {F32({5, 0})}, {F32({5, 0})});
}

void AddReductions(CaseList& list) {
  const std::vector<std::pair<Shape, std::vector<int64_t>>> reductions = {
      {{}, {}},
      {{1}, {0}},
      {{17}, {}},
      {{1023}, {0}},
      {{17, 33}, {}},
      {{17, 33}, {0}},
      {{17, 33}, {1}},
      {{1, 33}, {0}},
      {{33, 1}, {1}},
      {{2, 3, 5}, {1}},
      {{2, 3, 5}, {2, 0}},
      {{2, 3, 4, 5}, {1, 3}},
      {{2, 3, 4, 17}, {0, 2}},
      {{0, 5}, {0}},
      {{5, 0}, {0}},
      {{0}, {}},
  };
  for (const auto& [shape, axes] : reductions) {
    for (const bool keep : {false, true}) {
      Shape out;
      for (size_t i = 0; i < shape.size(); ++i) {
        const bool reduced = axes.empty() || std::count(axes.begin(), axes.end(), static_cast<int64_t>(i)) > 0;
        if (!reduced) out.push_back(shape[i]);
        if (reduced && keep) out.push_back(1);
      }
      for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max"}) {
        list.Add(op, {F32(shape)}, {F32(out)}, {{"axes", axes}, {"keep_dims", keep}});
      }
    }
  }
}

void AddLayouts(CaseList& list, DType dtype) {
  const auto type = [dtype](Shape shape) { return TensorType{dtype, std::move(shape)}; };
  for (const Shape& shape : PlainShapes()) {
    const int64_t count = NumElements(shape);
    list.Add("copy", {type(shape)}, {type(shape)}, {}, true);
    list.Add("reshape", {type(shape)}, {type({count})}, {{"shape", std::vector<int64_t>{count}}}, true);
  }
  const std::vector<std::pair<Shape, Shape>> broadcasts = {
      {{}, {}},         {{}, {3, 17}},          {{17}, {3, 17}},     {{3, 1}, {3, 17}},
      {{1}, {1023}},    {{2, 1, 5}, {2, 3, 5}}, {{3, 1}, {2, 3, 5}}, {{1, 5}, {0, 5}},
      {{2, 3}, {2, 3}},
  };
  for (const auto& [in, out] : broadcasts) {
    list.Add("broadcast_to", {type(in)}, {type(out)}, {{"shape", std::vector<int64_t>(out.begin(), out.end())}});
  }
  const std::vector<std::pair<Shape, std::vector<int64_t>>> transposes = {{{}, {}},
                                                                          {{17}, {0}},
                                                                          {{3, 17}, {1, 0}},
                                                                          {{33, 31}, {1, 0}},
                                                                          {{3, 17}, {0, 1}},
                                                                          {{2, 3, 5}, {2, 0, 1}},
                                                                          {{2, 3, 5}, {0, 2, 1}},
                                                                          {{2, 3, 4, 5}, {3, 1, 0, 2}},
                                                                          {{1, 17}, {1, 0}},
                                                                          {{0, 5}, {1, 0}}};
  for (const auto& [in, perm] : transposes) {
    Shape out;
    for (int64_t axis : perm) out.push_back(in[axis]);
    list.Add("transpose", {type(in)}, {type(out)}, {{"perm", perm}});
  }
  struct Window {
    Shape whole;
    std::vector<int64_t> begin;
    Shape part;
  };
  const std::vector<Window> windows = {{{17}, {3}, {5}},           {{17}, {0}, {17}},
                                       {{8, 17}, {2, 0}, {3, 17}}, {{8, 17}, {0, 4}, {8, 5}},
                                       {{8, 17}, {7, 16}, {1, 1}}, {{4, 3, 5}, {1, 0, 2}, {2, 3, 2}},
                                       {{8, 17}, {2, 0}, {0, 17}}, {{1023}, {1}, {1022}}};
  for (const Window& w : windows) {
    std::vector<int64_t> after;
    for (size_t i = 0; i < w.begin.size(); ++i) after.push_back(w.whole[i] - w.begin[i] - w.part[i]);
    list.Add("slice", {type(w.whole)}, {type(w.part)},
             {{"begin", w.begin}, {"size", std::vector<int64_t>(w.part.begin(), w.part.end())}});
    list.Add("pad", {type(w.part)}, {type(w.whole)}, {{"before", w.begin}, {"after", after}});
  }
  list.Add("concat", {type({3}), type({1}), type({17})}, {type({21})}, {{"axis", int64_t{0}}});
  list.Add("concat", {type({3, 5}), type({0, 5}), type({1, 5})}, {type({4, 5})}, {{"axis", int64_t{0}}});
  list.Add("concat", {type({3, 5}), type({3, 1})}, {type({3, 6})}, {{"axis", int64_t{1}}});
  list.Add("concat", {type({2, 3, 5}), type({2, 4, 5})}, {type({2, 7, 5})}, {{"axis", int64_t{1}}});
  list.Add("concat", {type({2, 3})}, {type({2, 3})}, {{"axis", int64_t{1}}});
}

void AddGathers(CaseList& list) {
  const std::vector<std::pair<Shape, Shape>> tables_and_ids = {
      {{5}, {7}}, {{5, 3}, {}}, {{1, 17}, {4}}, {{33, 64}, {3, 5}}, {{9, 2, 3}, {6}}, {{4, 5}, {0}}, {{4, 0}, {3}}};
  for (const auto& [table, ids] : tables_and_ids) {
    Shape rows = ids;
    rows.insert(rows.end(), table.begin() + 1, table.end());
    for (const DType id : {DType::kInt32, DType::kInt64}) {
      for (const DTypeInfo& info : kDTypes) {
        list.Add("gather", {{info.dtype, table}, {id, ids}}, {{info.dtype, rows}});
      }
      list.Add("gather_grad", {F32(rows), {id, ids}}, {F32(table)}, {{"rows", table[0]}, {"group", int64_t{2}}});
    }
  }
}

void AddGathersAlongAxis(CaseList& list) {
  struct Along {
    Shape whole;
    int64_t axis;
    int64_t picks;
  };
  const std::vector<Along> cases = {{{17}, 0, 5},      {{3, 17}, 1, 1},   {{3, 17}, 0, 40},  {{3, 17}, 1, 33},
                                    {{2, 3, 5}, 1, 4}, {{2, 3, 5}, 0, 1}, {{2, 3, 5}, 2, 0}, {{0, 5}, 1, 2},
                                    {{3, 0}, 1, 0},    {{1, 1, 1}, 2, 17}};
  for (const Along& c : cases) {
    Shape picked = c.whole;
    picked[c.axis] = c.picks;
    for (const DType id : {DType::kInt32, DType::kInt64}) {
      for (const DTypeInfo& info : kDTypes) {
        list.Add("gather_along_axis", {{info.dtype, c.whole}, {id, picked}}, {{info.dtype, picked}},
                 {{"axis", c.axis}});
      }
      list.Add("scatter_add_along_axis", {F32(picked), {id, picked}}, {F32(c.whole)},
               {{"axis", c.axis}, {"size", c.whole[c.axis]}});
    }
  }
}

// Updates whose factors are operands, which may be f32[] or f32[1].
void AddApplies(CaseList& list) {
  for (const Shape& shape : PlainShapes()) {
    const TensorType t = F32(shape);
    for (const TensorType& factor : {F32({}), F32({1})}) {
      for (const bool nesterov : {false, true}) {
        list.Add("apply_sgd", {t, t, t, t, factor, factor}, {},
                 {{"nesterov", nesterov}, {"weight_decay", 0.1}, {"dampening", 0.3}});
        list.Add("apply_adam", {t, t, t, t, factor, factor, factor, factor, factor, factor}, {},
                 {{"nesterov", nesterov}});
      }
      list.Add("apply_sgd", {t, t, t, t, factor, factor}, {});
      list.Add("apply_momentum", {t, t, t, factor, factor}, {});
      list.Add("apply_adamw", {t, t, t, t, factor, factor, factor, factor, factor}, {});
    }
    for (const DTypeInfo& info : kDTypes) {
      const TensorType type{info.dtype, shape};
      list.Add("assign", {type, type}, {});
      if (info.dtype != DType::kBool) list.Add("assign_add", {type, type}, {});
    }
  }
}

void AddOptimizers(CaseList& list) {
  for (const Shape& shape : PlainShapes()) {
    const TensorType t = F32(shape);
    for (const double decay : {0.0, 0.1}) {
      list.Add("sgd", {t, t}, {}, {{"lr", 0.05}, {"weight_decay", decay}});
      for (const bool nesterov : {false, true}) {
        list.Add("sgd", {t, t, t}, {},
                 {{"lr", 0.05}, {"momentum", 0.9}, {"nesterov", nesterov}, {"weight_decay", decay}});
      }
      for (const char* op : {"adam", "adamw"}) {
        list.Add(op, {t, t, t, t, F32({})}, {}, {{"lr", 0.01}, {"weight_decay", decay}});
        list.Add(op, {t, t, t, t, F32({})}, {},
                 {{"lr", 0.01}, {"beta1", 0.8}, {"beta2", 0.99}, {"eps", 1e-3}, {"weight_decay", decay}});
      }
    }
  }
}

// Of an update: accumulators begun or not, second moments not negative, and factors of a usual size.
void FillFactors(const KernelSpec& spec, std::vector<RefTensor>& operands) {
  const auto set = [&](std::vector<double> factors) {
    const size_t from = spec.inputs.size() - factors.size();
    for (size_t i = 0; i < factors.size(); ++i) operands[from + i].values = {static_cast<float>(factors[i])};
  };
  if (spec.op == "apply_sgd") {
    for (double& fresh : operands[3].values) fresh = fresh > 0 ? 1 : 0;
    set({0.05, spec.attributes.empty() ? 0 : 0.9});
  } else if (spec.op == "apply_momentum") {
    set({0.05, 0.9});
  } else {
    for (double& moment2 : operands[3].values) moment2 = std::abs(moment2);
    set(spec.op == "apply_adam" ? std::vector<double>{0.729, 0.997, 0.01, 0.9, 0.999, 1e-8}
                                : std::vector<double>{0.01, 0.9, 0.999, 1e-6, 0.1});
  }
}

}  // namespace

std::string KernelCase::Name() const {
  std::string name = absl::StrCat(spec.op, "(");
  for (const TensorType& type : spec.inputs) absl::StrAppend(&name, " ", type.ToString());
  absl::StrAppend(&name, " ) ", AttributesToString(spec.attributes), " ->");
  for (const TensorType& type : spec.outputs) absl::StrAppend(&name, " ", type.ToString());
  return name;
}

std::vector<KernelCase> AllKernelCases() {
  CaseList list;
  AddMatmuls(list);
  AddBatchMatmuls(list);
  AddElementwise(list);
  AddMaps(list);
  AddLosses(list);
  AddReductions(list);
  AddNormalizations(list);
  for (const DTypeInfo& info : kDTypes) AddLayouts(list, info.dtype);
  AddGathers(list);
  AddGathersAlongAxis(list);
  AddLogicals(list);
  AddDropouts(list);
  AddLabelCounts(list);
  AddPrints(list);
  AddOptimizers(list);
  AddApplies(list);
  return list.Take();
}

std::vector<RefTensor> MakeOperands(const KernelSpec& spec, uint32_t seed) {
  std::mt19937 random(seed);
  // Not around zero: sums then keep their size, and errors can be told from cancellation.
  std::uniform_real_distribution<float> real(-1.f, 2.f);
  std::uniform_int_distribution<int32_t> whole(-1000, 1000);
  std::vector<RefTensor> operands;
  for (const auto* types : {&spec.inputs, &spec.outputs}) {
    for (const TensorType& type : *types) {
      RefTensor tensor{type, std::vector<double>(static_cast<size_t>(type.num_elements()))};
      for (double& value : tensor.values) {
        value = type.dtype == DType::kFloat32 ? real(random) : whole(random);
        if (type.dtype == DType::kBool) value = whole(random) % 2 == 0 ? 0 : 1;
      }
      operands.push_back(std::move(tensor));
    }
  }
  if (spec.op.rfind("softmax_cross_entropy", 0) == 0) {
    const size_t labels = spec.op == "softmax_cross_entropy" ? 1 : 2;
    if (spec.inputs.size() == labels + 2) operands[labels + 1].values[0] = 2.5;
    const int64_t classes = operands[labels - 1].type.shape[1];
    for (size_t i = 0; i < operands[labels].values.size(); ++i) {
      operands[labels].values[i] = i % 4 == 2 ? static_cast<double>(GetInt(spec.attributes, "ignore_index", -100))
                                              : static_cast<double>(random() % classes);
    }
  }
  // Small whole numbers in all types, so that some are equal; what is compared is then the same in float and in double.
  if (spec.op.find("equal") != std::string::npos || spec.op == "less" || spec.op == "greater") {
    for (RefTensor& operand : operands) {
      for (double& value : operand.values) value = operand.type.dtype == DType::kBool ? value : whole(random) % 4;
    }
  }
  if (spec.op == "labels_per_micro_batch") {
    for (double& label : operands[0].values) label = static_cast<double>(random() % 5);
  }
  if (spec.op == "dropout") {
    operands[1].values[0] = seed;
    operands[2].values[0] = 3;
  }
  if (spec.op == "gather" || spec.op == "gather_grad") {
    const TensorType& table = spec.op == "gather" ? spec.inputs[0] : spec.outputs[0];
    for (double& id : operands[1].values) id = static_cast<double>(random() % static_cast<uint64_t>(table.shape[0]));
  }
  if (spec.op.find("_along_axis") != std::string::npos) {
    const TensorType& whole = spec.op == "gather_along_axis" ? spec.inputs[0] : spec.outputs[0];
    const auto extent = static_cast<uint64_t>(whole.shape[GetInt(spec.attributes, "axis", 0)]);
    for (double& id : operands[1].values) id = static_cast<double>(random() % extent);
  }
  if (spec.op == "log" || spec.op == "sqrt" || spec.op == "rsqrt" || spec.op == "pow") {
    for (double& value : operands[0].values) value = static_cast<float>(std::abs(value) + 0.1);
  }
  if (spec.op.rfind("apply_", 0) == 0) FillFactors(spec, operands);
  if (spec.op == "div" || spec.op == "reciprocal") {
    for (double& value : operands[spec.op == "div" ? 1 : 0].values)
      value = static_cast<float>(value < 0 ? value - 0.5 : value + 0.5);
  }
  if (spec.op == "adam" || spec.op == "adamw") {
    for (double& value : operands[3].values) value = std::abs(value);
    operands[4].values[0] = seed % 5;
  }
  return operands;
}

}  // namespace pipeloom
