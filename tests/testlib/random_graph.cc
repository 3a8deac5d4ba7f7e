#include "tests/testlib/random_graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/status_macros.h"
#include "tests/testlib/step_text.h"

namespace pipeloom {
namespace {

using Var = StepText::Var;

class Generator {
 public:
  explicit Generator(uint64_t seed) : choice_(seed) {
    sizes_ = {choice_.Between(5, 17), choice_.Between(1, 17), choice_.Between(1, 9)};
    graph_.rows = choice_.Percent(10) ? choice_.Between(40, 70) : choice_.Between(1, 9);
    graph_.micro_batches = choice_.Between(1, 7);
    graph_.classes = choice_.Between(2, 11);
  }

  RandomGraph Run() {
    floats_ = {text_.Input("x", "f32", {choice_.Of(sizes_)}), text_.Input("mask", "f32", {choice_.Of(sizes_)})};
    ids_ = {text_.Input("ids", "i32", {choice_.Between(1, 4)})};
    tokens_ = {text_.Input("tokens", "i64", {choice_.Between(1, 4)})};
    sums_ = choice_.Percent(30);
    const int cells = choice_.Between(4, 10);
    for (int i = 0; i < cells; ++i) {
      text_.cell = absl::StrCat(choice_.Percent(50) ? "net.block" : "c", i);
      graph_.cells.push_back(text_.cell);
      i + 1 == cells ? MakeHead() : MakeCell();
    }
    return std::move(graph_);
  }

 private:
  // ----- values

  // A parameter f32[dims], at times one that there is already.
  std::string Parameter(const std::vector<int>& dims, bool own = false) {
    std::vector<std::string> fitting;
    for (const auto& [name, has] : parameters_) {
      if (has == dims) fitting.push_back(name);
    }
    if (!own && !fitting.empty() && choice_.Percent(35)) return choice_.Of(fitting);
    graph_.parameters.push_back(absl::StrCat(graph_.cells.back(), ".p", parameters_.size()));
    const bool trainable = own || choice_.Percent(80);
    const std::string name = text_.Parameter(graph_.parameters.back(), dims, trainable);
    if (trainable) absl::StrAppend(&gradients_, ", %", name, " {reduce=\"gradient\"}");
    parameters_.push_back({name, dims});
    return name;
  }

  // Of the values so far: mostly the latest, at times any, over whatever distance.
  Var Pick() { return choice_.Percent(60) ? floats_.back() : choice_.Of(floats_); }

  // f32[rows, n]; a value of three axes is seen as rows where it is read.
  Var PickRows() {
    Var value = Pick();
    if (value.dims.size() == 1) return value;
    const int size = value.dims[0] * value.dims[1];
    return text_.Emit("reshape", {value.name}, {size}, absl::StrCat("shape=[{rows},", size, "]"));
  }

  // A value of `size` columns from any other: cut, or filled up with zeros.
  Var Fit(const Var& x, int size) {
    const int has = x.dims[0];
    if (has == size) return x;
    if (has > size) {
      return text_.Emit("slice", {x.name}, {size},
                        absl::StrCat("begin=[0,", choice_.Below(has - size + 1), "], size=[{rows},", size, "]"));
    }
    const int before = choice_.Below(size - has + 1);
    return text_.Emit("pad", {x.name}, {size},
                      absl::StrCat("before=[0,", before, "], after=[0,", size - has - before, "]"));
  }

  Var Activation(const Var& x) {
    static const auto& ops = *new std::vector<std::string>{"relu", "tanh", "sigmoid", "gelu", "softmax"};
    return text_.Emit(choice_.Of(ops), {x.name}, x.dims);
  }

  // ----- cells

  Var Dense(const Var& x, int size, bool own = false) {
    const int has = x.dims[0];
    Var y;
    switch (choice_.Below(own ? 1 : 4)) {
      case 0:
      case 1:
        y = text_.Emit("matmul", {x.name, Parameter({has, size}, own)}, {size});
        break;
      case 2:
        y = text_.Emit("matmul", {x.name, Parameter({size, has})}, {size}, "transpose_b");
        break;
      default: {
        const std::string weight = Parameter({size, has});
        const std::string type = absl::StrCat("f32[", has, ",", size, "]");
        y = text_.Emit("matmul", {x.name, text_.EmitTyped("transpose", {weight}, type, "perm=[1,0]")}, {size});
      }
    }
    return choice_.Percent(60) ? text_.Emit("add", {y.name, Parameter({size})}, {size}) : y;
  }

  Var Normalize(const Var& x) {
    const int size = x.dims[0];
    const std::string gamma = Parameter({size});
    return text_.Emit("layer_norm", {x.name, gamma, Parameter({size})}, x.dims, "eps=0.125");
  }

  // Two values, one of them between 0 and 1 (sums and products alone could grow without bounds).
  Var Gate() {
    const Var x = PickRows();
    const Var y = Fit(PickRows(), x.dims[0]);
    const Var gate = text_.Emit("sigmoid", {y.name}, y.dims);
    return text_.Emit("mul", {gate.name, x.name}, x.dims);
  }

  Var Residual() {
    const Var x = PickRows();
    const Var y = Fit(PickRows(), x.dims[0]);
    return text_.Emit(choice_.Percent(50) ? "add" : "sub", {x.name, y.name}, x.dims);
  }

  // Not above a width that would slow all cells that follow.
  Var Join() {
    const Var x = PickRows();
    const Var y = Fit(PickRows(), choice_.Between(1, 20));
    if (x.dims[0] > 40) return Activation(x);
    return text_.Emit("concat", {x.name, y.name}, {x.dims[0] + y.dims[0]}, "axis=1");
  }

  // Three axes, the last two of them turned: not the order of the rows that they came from.
  Var Turn() {
    const Var x = PickRows();
    std::vector<int> halves = {1, x.dims[0]};
    for (int i = 2; i * i <= x.dims[0]; ++i) {
      if (x.dims[0] % i == 0) halves = {i, x.dims[0] / i};
    }
    const Var cube =
        text_.Emit("reshape", {x.name}, halves, absl::StrCat("shape=[{rows},", halves[0], ",", halves[1], "]"));
    return text_.Emit("transpose", {cube.name}, {halves[1], halves[0]}, "perm=[0,2,1]");
  }

  // One constant for the whole network, read wherever a cell wants it.
  Var Constants() {
    const Var x = PickRows();
    if (scale_.empty()) scale_ = text_.Constant("0.75", "f32[]");
    const Var y = text_.Emit("mul", {x.name, scale_}, x.dims);
    return choice_.Percent(50)
               ? y
               : text_.Emit("div", {y.name, text_.Constant("1.5", absl::StrCat("f32[", x.dims[0], "]"))}, x.dims);
  }

  // Each row less its mean: a value of one column, stretched over the others.
  Var Center() {
    const Var x = PickRows();
    const Var mean = text_.Emit("reduce_mean", {x.name}, {1}, "axes=[1], keep_dims");
    return text_.Emit("sub", {x.name, mean.name}, x.dims);
  }

  // What the inputs alone give needs no gradient.
  Var Mask() {
    const Var x = PickRows();
    const Var mask = text_.Emit("tanh", {"mask"}, floats_[1].dims);
    floats_.push_back(mask);
    return text_.Emit("mul", {x.name, Fit(mask, x.dims[0]).name}, x.dims);
  }

  // Integers of one of the two kinds, all below the number of classes.
  void MakeIds() {
    const bool labels = choice_.Percent(60);
    const std::string dtype = labels ? "i32" : "i64";
    std::vector<Var>& pool = labels ? ids_ : tokens_;
    const Var ids = choice_.Of(pool);
    const int size = ids.dims[0];
    switch (choice_.Below(4)) {
      case 0:
        pool.push_back(text_.EmitOf(dtype, "copy", {ids.name}, {size}));
        break;
      case 1:
        pool.push_back(text_.EmitOf(dtype, "concat", {ids.name, pool[0].name}, {size + pool[0].dims[0]}, "axis=1"));
        break;
      case 2:
        pool.push_back(text_.EmitOf(dtype, "slice", {ids.name}, {1},
                                    absl::StrCat("begin=[0,", choice_.Below(size), "], size=[{rows},1]")));
        break;
      default: {
        const Var twice = text_.EmitOf(dtype, "add", {ids.name, ids.name}, {size});
        pool.push_back(text_.EmitOf(dtype, "sub", {twice.name, ids.name}, {size}));
      }
    }
  }

  // Rows of a table, three axes.
  Var Embed() {
    const Var ids = choice_.Of(choice_.Percent(50) ? ids_ : tokens_);
    const int size = sizes_[2];
    return text_.Emit("gather", {Parameter({graph_.classes, size}), ids.name}, {ids.dims[0], size});
  }

  Var OneValue() {
    switch (choice_.Below(9)) {
      case 0:
        return Gate();
      case 1:
        return Residual();
      case 2:
        return Join();
      case 3:
        return Turn();
      case 4:
        return Constants();
      case 5:
        return Center();
      case 6:
        return Mask();
      default:
        return Activation(PickRows());
    }
  }

  void MakeCell() {
    int more = choice_.Below(3);
    if (choice_.Percent(15)) {
      floats_.push_back(Embed());
    } else if (choice_.Percent(60)) {
      const Var x = PickRows();
      const Var y = choice_.Percent(80) ? Dense(x, choice_.Of(sizes_)) : Normalize(x);
      floats_.push_back(choice_.Percent(60) ? Activation(y) : y);
    } else {
      floats_.push_back(OneValue());
    }
    // At times several values for the cells above, a tuple; some stand outside all cells.
    for (; more > 0; --more) {
      if (choice_.Percent(20)) text_.cell.clear();
      floats_.push_back(OneValue());
    }
    if (choice_.Percent(30)) MakeIds();
    if (choice_.Percent(15)) terms_.push_back(Term());
  }

  // ----- the loss

  // A term of the loss from the middle of the network.
  std::string Term() {
    const Var x = PickRows();
    const Var square = text_.Emit("mul", {x.name, x.name}, x.dims);
    return text_.EmitTyped(sums_ ? "reduce_sum" : "reduce_mean", {square.name}, "f32[]");
  }

  void MakeHead() {
    Var x = PickRows();
    for (int more = choice_.Between(1, 3); more > 0; --more) {
      const Var y = PickRows();
      x = text_.Emit("concat", {x.name, y.name}, {x.dims[0] + y.dims[0]}, "axis=1");
    }
    const Var y = Dense(x, graph_.classes, /*own=*/true);
    const std::string reduction = sums_ ? "reduction=\"sum\"" : "";
    std::string loss;
    if (choice_.Percent(60)) {
      const Var ids = choice_.Of(ids_);
      const Var column = text_.EmitOf("i32", "slice", {ids.name}, {1}, "begin=[0,0], size=[{rows},1]");
      const Var label = text_.EmitOf("i32", "reshape", {column.name}, {}, "shape=[{rows}]");
      loss = text_.EmitTyped("softmax_cross_entropy", {y.name, label.name}, "f32[]", reduction);
    } else {
      const Var target = text_.Input("t", "f32", y.dims);
      loss = text_.EmitTyped("mse", {y.name, target.name}, "f32[]", reduction);
    }
    for (const std::string& term : terms_) {
      const std::string part = text_.EmitTyped("mul", {term, text_.Constant("0.125", "f32[]")}, "f32[]");
      loss = text_.EmitTyped("add", {loss, part}, "f32[]");
    }
    Finish(loss);
  }

  void Finish(const std::string& loss) {
    std::string outputs = absl::StrCat("%", loss, " {reduce=\"", sums_ ? "sum" : "mean", "\"}");
    if (choice_.Percent(30)) {
      // Of a node: an input is not handed out as it is.
      absl::StrAppend(&outputs, ", %",
                      floats_[static_cast<size_t>(choice_.Between(2, static_cast<int>(floats_.size()) - 1))].name,
                      " {index=1, reduce=\"concat\"}");
    }
    const std::string optimizer = Optimizer();
    graph_.text = text_.Finish(outputs, optimizer);
    graph_.text_with_gradients = text_.Finish(absl::StrCat(outputs, gradients_), optimizer);
  }

  std::string Optimizer() {
    const double rate = sums_ ? 0.05 / (graph_.rows * graph_.micro_batches) : 0.05;
    switch (choice_.Below(5)) {
      case 0:
        return absl::StrCat("sgd {lr=", rate, ", momentum=0.9, nesterov, weight_decay=0.01}");
      case 1:
        return absl::StrCat("sgd {lr=", rate, ", momentum=0.5}");
      // With a small eps the quotient of Adam magnifies the rounding of gradients that nearly cancel.
      case 2:
        return "adam {eps=0.01, lr=0.01}";
      case 3:
        return "adamw {eps=0.01, lr=0.01, weight_decay=0.5}";
      default:
        return absl::StrCat("sgd {lr=", rate, "}");
    }
  }

  RandomChoice choice_;
  RandomGraph graph_;
  StepText text_;
  std::vector<int> sizes_;
  std::vector<Var> floats_;
  std::vector<Var> ids_;     // i32
  std::vector<Var> tokens_;  // i64
  std::vector<std::string> terms_;
  std::vector<std::pair<std::string, std::vector<int>>> parameters_;  // name of the value, extents
  std::string scale_;
  std::string gradients_;
  bool sums_ = false;  // the loss is a sum, or a mean
};

}  // namespace

RandomGraph MakeRandomGraph(uint64_t seed) { return Generator(seed).Run(); }

std::vector<int> RandomStages(RandomChoice& choice, int cells, int stages) {
  PIPELOOM_CHECK(cells >= stages, cells, " cells on ", stages, " stages");
  std::vector<int> stage_of(static_cast<size_t>(cells), 0);
  // The first cell of each further stage; each later stage needs a cell above it.
  int first = 0;
  for (int stage = 1; stage < stages; ++stage) {
    first = choice.Between(first + 1, cells - (stages - stage));
    std::fill(stage_of.begin() + first, stage_of.end(), stage);
  }
  return stage_of;
}

std::vector<int> RandomStagesWithReturns(RandomChoice& choice, int cells, int stages) {
  std::vector<int> stage_of = RandomStages(choice, cells, stages);
  for (int i = cells - 1; i > 0; --i) {
    std::swap(stage_of[static_cast<size_t>(i)], stage_of[static_cast<size_t>(choice.Below(i + 1))]);
  }
  return stage_of;
}

}  // namespace pipeloom
