#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "passes/ir/parse.h"
#include "passes/ir/print.h"
#include "passes/ir/verify.h"
#include "plugin/cells/build_context.h"
#include "plugin/cells/build_module.h"
#include "plugin/cells/layers.h"
#include "plugin/cells/losses.h"
#include "plugin/cells/ops.h"

namespace pipeloom {
namespace {

constexpr DType kF32 = DType::kFloat32;

// The graph of a cell alone.
std::string TextOf(Cell& cell, const std::vector<TensorType>& types) {
  const absl::StatusOr<CellTree> tree = CellTree::Of(cell);
  if (!tree.ok()) return tree.status().ToString();
  Graph graph("cell");
  BuildContext context(*tree, cell.Parameters(), graph);
  std::vector<Var> inputs;
  inputs.reserve(types.size());
  for (const TensorType& type : types) inputs.push_back(context.AddInput("x", type, 0));
  const std::vector<Var> outputs = context.Call(cell, inputs);
  if (!context.status().ok()) return context.status().ToString();
  for (const Var& output : outputs) graph.outputs.push_back({output.value(), "concat"});
  return Print(graph);
}

TEST(GraphText, Dense) {
  Dense dense(5, 3);
  EXPECT_EQ(TextOf(dense, {{kF32, {2, 5}}}),
            R"(graph @cell(%x: f32[2,5] {batch_axis=0}) -> (%add {reduce="concat"}) {
  %weight = param "weight" : f32[3,5]
  %bias = param "bias" : f32[3]
  %matmul = matmul(%x, %weight) {transpose_b} : f32[2,3]  // forward
  %add = add(%matmul, %bias) : f32[2,3]  // forward
}
)");
}

// Two uses of one cell, which is to stay a call.
class Twice : public Cell {
 public:
  Twice() : dense_(AddCell<Dense>("dense", 4, 4)) { dense_.SetLazyInline(); }

 protected:
  Var Construct(Var x) override { return dense_(ops::Relu(dense_(x))); }

 private:
  Dense& dense_;
};

TEST(GraphText, LazyInlineMakesCalls) {
  const PipelineCellInference pipeline(std::make_shared<Twice>(), 1);
  const absl::StatusOr<CellTree> tree = CellTree::Of(*pipeline.network);
  ASSERT_TRUE(tree.ok()) << tree.status();
  const absl::StatusOr<Module> module = BuildInferenceModule(pipeline, *tree, {{kF32, {2, 4}}}, {});
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(Verify(*module), absl::OkStatus());
  EXPECT_EQ(Print(*module), R"(pipeline {micro_batches=1, schedule="forward", stages=1, threads=1}

block @dense(%input0: f32[2,4]) -> (%add) {
  %weight = param "weight" {trainable=false} : f32[4,4]
  %bias = param "bias" {trainable=false} : f32[4]
  %matmul = matmul(%input0, %weight) {transpose_b} : f32[2,4]  // forward
  %add = add(%matmul, %bias) : f32[2,4]  // forward
}

graph @step(%input0: f32[2,4] {batch_axis=0}) -> (%add.1 {reduce="concat"}) {
  %dense.weight = param "dense.weight" {trainable=false} : f32[4,4]
  %dense.bias = param "dense.bias" {trainable=false} : f32[4]
  %add = call(%input0, %dense.weight, %dense.bias) {block="dense"} : f32[2,4]  // dense, forward
  %relu = relu(%add) : f32[2,4]  // forward
  %add.1 = call(%relu, %dense.weight, %dense.bias) {block="dense"} : f32[2,4]  // dense, forward
}
)");
}

TEST(GraphText, DenseWithoutBiasOnThreeAxes) {
  DenseOptions options;
  options.has_bias = false;
  Dense dense(5, 3, options);
  EXPECT_EQ(TextOf(dense, {{kF32, {2, 4, 5}}}),
            R"(graph @cell(%x: f32[2,4,5] {batch_axis=0}) -> (%reshape.1 {reduce="concat"}) {
  %weight = param "weight" : f32[3,5]
  %reshape = reshape(%x) {shape=[8,5]} : f32[8,5]  // forward
  %matmul = matmul(%reshape, %weight) {transpose_b} : f32[8,3]  // forward
  %reshape.1 = reshape(%matmul) {shape=[2,4,3]} : f32[2,4,3]  // forward
}
)");
}

TEST(GraphText, SequentialCellNamesItsCellsByNumber) {
  SequentialCell cells;
  cells.Append<Flatten>();
  cells.Append<ReLU>();
  cells.Append<GELU>(/*approximate=*/false);
  cells.Append(std::make_shared<GELU>());
  cells.Append<Tanh>();
  EXPECT_EQ(TextOf(cells, {{kF32, {2, 3, 4}}}),
            R"(graph @cell(%x: f32[2,3,4] {batch_axis=0}) -> (%tanh {reduce="concat"}) {
  %reshape = reshape(%x) {shape=[2,12]} : f32[2,12]  // 0, forward
  %relu = relu(%reshape) : f32[2,12]  // 1, forward
  %gelu = gelu(%relu) {approximate=false} : f32[2,12]  // 2, forward
  %gelu.1 = gelu(%gelu) {approximate} : f32[2,12]  // 3, forward
  %tanh = tanh(%gelu.1) : f32[2,12]  // 4, forward
}
)");
}

TEST(GraphText, SoftmaxAlongAnyAxis) {
  SequentialCell cells;
  cells.Append<Softmax>();
  cells.Append<LogSoftmax>(/*axis=*/2);
  cells.Append<LogSoftmax>(/*axis=*/-2);
  EXPECT_EQ(TextOf(cells, {{kF32, {2, 3, 4}}}),
            R"(graph @cell(%x: f32[2,3,4] {batch_axis=0}) -> (%transpose.1 {reduce="concat"}) {
  %softmax = softmax(%x) {axis=-1} : f32[2,3,4]  // 0, forward
  %log_softmax = log_softmax(%softmax) {axis=-1} : f32[2,3,4]  // 1, forward
  %transpose = transpose(%log_softmax) {perm=[0,2,1]} : f32[2,4,3]  // 2, forward
  %log_softmax.1 = log_softmax(%transpose) {axis=-1} : f32[2,4,3]  // 2, forward
  %transpose.1 = transpose(%log_softmax.1) {perm=[0,2,1]} : f32[2,3,4]  // 2, forward
}
)");
  Softmax beyond(3);
  EXPECT_NE(TextOf(beyond, {{kF32, {2, 3, 4}}}).find("softmax: f32[2,3,4] has no axis 3; give one from -3 to 2"),
            std::string::npos);
}

TEST(GraphText, LayerNormOverOneAxisAndOverTwo) {
  SequentialCell cells;
  cells.Append<LayerNorm>(Shape{4});
  cells.Append<LayerNorm>(Shape{3, 4}, /*epsilon=*/0.5);
  EXPECT_EQ(TextOf(cells, {{kF32, {2, 3, 4}}}),
            R"(graph @cell(%x: f32[2,3,4] {batch_axis=0}) -> (%reshape.3 {reduce="concat"}) {
  %0.gamma = param "0.gamma" : f32[4]
  %0.beta = param "0.beta" : f32[4]
  %1.gamma = param "1.gamma" : f32[3,4]
  %1.beta = param "1.beta" : f32[3,4]
  %layer_norm = layer_norm(%x, %0.gamma, %0.beta) {eps=1e-07} : f32[2,3,4]  // 0, forward
  %reshape = reshape(%layer_norm) {shape=[2,12]} : f32[2,12]  // 1, forward
  %reshape.1 = reshape(%1.gamma) {shape=[12]} : f32[12]  // 1, forward
  %reshape.2 = reshape(%1.beta) {shape=[12]} : f32[12]  // 1, forward
  %layer_norm.1 = layer_norm(%reshape, %reshape.1, %reshape.2) {eps=0.5} : f32[2,12]  // 1, forward
  %reshape.3 = reshape(%layer_norm.1) {shape=[2,3,4]} : f32[2,3,4]  // 1, forward
}
)");
  LayerNorm other(Shape{3});
  EXPECT_NE(TextOf(other, {{kF32, {2, 3, 4}}})
                .find("a LayerNorm([3]) takes values whose last extents are those, at least one, not f32[2,3,4]"),
            std::string::npos);
  LayerNorm none(Shape{});
  EXPECT_NE(TextOf(none, {{kF32, {2}}}).find("a LayerNorm([]) takes values"), std::string::npos);
}

TEST(GraphText, SequentialCellWithTheSameCellTwice) {
  auto dense = std::make_shared<Dense>(4, 4);
  SequentialCell cells({dense, std::make_shared<Tanh>(), dense});
  EXPECT_EQ(TextOf(cells, {{kF32, {2, 4}}}),
            R"(graph @cell(%x: f32[2,4] {batch_axis=0}) -> (%add.1 {reduce="concat"}) {
  %0.weight = param "0.weight" : f32[4,4]
  %0.bias = param "0.bias" : f32[4]
  %matmul = matmul(%x, %0.weight) {transpose_b} : f32[2,4]  // 0, forward
  %add = add(%matmul, %0.bias) : f32[2,4]  // 0, forward
  %tanh = tanh(%add) : f32[2,4]  // 1, forward
  %matmul.1 = matmul(%tanh, %0.weight) {transpose_b} : f32[2,4]  // 0, forward
  %add.1 = add(%matmul.1, %0.bias) : f32[2,4]  // 0, forward
}
)");
}

TEST(GraphText, Losses) {
  CrossEntropyLoss cross_entropy("sum", /*ignore_index=*/-1);
  EXPECT_EQ(TextOf(cross_entropy, {{kF32, {2, 3}}, {DType::kInt32, {2}}}),
            R"(graph @cell(%x: f32[2,3] {batch_axis=0}, %x.1: i32[2] {batch_axis=0}) -> )"
            R"((%softmax_cross_entropy {reduce="concat"}) {
  %softmax_cross_entropy = softmax_cross_entropy(%x, %x.1) {ignore_index=-1, reduction="sum"} : f32[]  // forward
}
)");
  MSELoss mse;
  EXPECT_EQ(TextOf(mse, {{kF32, {2, 3}}, {kF32, {2, 3}}}),
            R"(graph @cell(%x: f32[2,3] {batch_axis=0}, %x.1: f32[2,3] {batch_axis=0}) -> (%mse {reduce="concat"}) {
  %mse = mse(%x, %x.1) {reduction="mean"} : f32[]  // forward
}
)");
}

class AllOps : public Cell {
 public:
  std::vector<Var> Construct(const std::vector<Var>& inputs) override {
    const Var x = inputs[0];
    const Var y = inputs[1];
    return {ops::MatMul(x, y, /*transpose_a=*/true),
            ops::Sub(x, y),
            ops::Mul(x, y),
            ops::Div(x, y),
            ops::Neg(x),
            ops::Sigmoid(x),
            ops::ReduceSum(x, {1}, /*keep_dims=*/true),
            ops::ReduceMean(x, {1}),
            ops::BroadcastTo(x, {2, 2, 3}),
            ops::Transpose(x, {1, 0}),
            ops::Slice(x, {0, 1}, {2, 2}),
            ops::Pad(x, {0, 1}, {0, 2}),
            ops::Concat({x, y, x}, 1),
            ops::Op("copy", {x})};
  }
};

TEST(GraphText, FunctionsOfOpsGiveTheirNodes) {
  AllOps cell;
  const std::string text = TextOf(cell, {{kF32, {2, 3}}, {kF32, {2, 3}}});
  for (const char* node :
       {"matmul(%x, %x.1) {transpose_a} : f32[3,3]", "sub(%x, %x.1) : f32[2,3]", "mul(%x, %x.1) : f32[2,3]",
        "div(%x, %x.1) : f32[2,3]", "neg(%x) : f32[2,3]", "sigmoid(%x) : f32[2,3]",
        "reduce_sum(%x) {axes=[1], keep_dims} : f32[2,1]", "reduce_mean(%x) {axes=[1], keep_dims=false} : f32[2]",
        "broadcast_to(%x) {shape=[2,2,3]} : f32[2,2,3]", "transpose(%x) {perm=[1,0]} : f32[3,2]",
        "slice(%x) {begin=[0,1], size=[2,2]} : f32[2,2]", "pad(%x) {after=[0,2], before=[0,1]} : f32[2,6]",
        "concat(%x, %x.1, %x) {axis=1} : f32[2,9]", "copy(%x) : f32[2,3]"}) {
    EXPECT_NE(text.find(node), std::string::npos) << node << "\nis not in\n" << text;
  }
}

// A cell with a parameter of its own, and what a parameter is given to.
class Scale : public Cell {
 public:
  Scale() : factor(AddParameter("factor", {3}, Ones())) {}
  Var Construct(Var x) override { return ops::Mul(x, factor); }

  ParameterPtr& factor;
};

// Two results; the parameter itself is one.
class Lookup : public Cell {
 public:
  Lookup() : table_(AddParameter("table", {3, 3}, Ones())) {}
  std::vector<Var> Construct(const std::vector<Var>& inputs) override {
    return {ops::MatMul(inputs[0], table_), table_};
  }

 private:
  ParameterPtr& table_;
};

class TiedNetwork : public Cell {
 public:
  TiedNetwork() : lookup_(AddCell<Lookup>("lookup")), scale_(AddCell<Scale>("scale")), last_(AddCell<Scale>("last")) {
    last_.factor = scale_.factor;
  }
  Var Construct(Var x) override {
    const std::vector<Var> rows_and_table = lookup_(std::vector<Var>{x});
    return last_(ops::MatMul(scale_(rows_and_table[0]), rows_and_table[1]));
  }

 private:
  Lookup& lookup_;
  Scale& scale_;
  Scale& last_;
};

TEST(GraphText, ASharedParameterIsOneWeightNamedByItsFirstOwner) {
  TiedNetwork net;
  EXPECT_EQ(net.TrainableParams().size(), 2u);
  EXPECT_EQ(TextOf(net, {{kF32, {2, 3}}}),
            R"(graph @cell(%x: f32[2,3] {batch_axis=0}) -> (%mul.1 {reduce="concat"}) {
  %lookup.table = param "lookup.table" : f32[3,3]
  %scale.factor = param "scale.factor" : f32[3]
  %matmul = matmul(%x, %lookup.table) : f32[2,3]  // lookup, forward
  %mul = mul(%matmul, %scale.factor) : f32[2,3]  // scale, forward
  %matmul.1 = matmul(%mul, %lookup.table) : f32[2,3]  // forward
  %mul.1 = mul(%matmul.1, %scale.factor) : f32[2,3]  // last, forward
}
)");
}

class TwoLayers : public Cell {
 public:
  TwoLayers() : layer1_(AddCell<Dense>("layer1", 6, 4)), layer2_(AddCell<Dense>("layer2", 4, 3)) {}
  Var Construct(Var x) override { return layer2_(layer1_(x)); }
  Dense& layer1() { return layer1_; }

 private:
  Dense& layer1_;
  Dense& layer2_;
};

Pipeline TwoLayerPipeline(const std::shared_ptr<TwoLayers>& net) {
  return Pipeline(std::make_shared<WithLossCell>(net, std::make_shared<CrossEntropyLoss>()), /*micro_size=*/2,
                  {{"_backbone.layer2", 1}}, "sum");
}

const std::vector<TensorType> kBatch = {{kF32, {8, 6}}, {DType::kInt32, {8}}};

TEST(Modules, TrainingHasOneMicroBatchTheLossAndTheUpdateRule) {
  auto net = std::make_shared<TwoLayers>();
  net->layer1().SetPipelineStage(0);
  net->layer1().weight->SetRequiresGrad(false);
  Pipeline pipeline = TwoLayerPipeline(net);
  const absl::StatusOr<CellTree> tree = CellTree::Of(*pipeline.net_with_loss);
  ASSERT_TRUE(tree.ok()) << tree.status();
  PipelineConfig config;
  config.stages = 2;
  config.schedule = "gpipe";
  const absl::StatusOr<Module> module =
      BuildTrainingModule(pipeline, *tree, SGD(net->TrainableParams(), 0.01, 0.9), kBatch, config);
  ASSERT_TRUE(module.ok()) << module.status();
  const std::string expected = R"(pipeline {micro_batches=2, schedule="gpipe", stages=2, threads=1}
stage "_backbone.layer2" = 1
stage "_backbone.layer1" = 0

graph @step(%input0: f32[4,6] {batch_axis=0}, %input1: i32[4] {batch_axis=0}) -> )"
                               R"((%softmax_cross_entropy {reduce="sum"}) {
  %layer1.weight = param "layer1.weight" {trainable=false} : f32[4,6]
  %layer1.bias = param "layer1.bias" : f32[4]
  %layer2.weight = param "layer2.weight" : f32[3,4]
  %layer2.bias = param "layer2.bias" : f32[3]
  %matmul = matmul(%input0, %layer1.weight) {transpose_b} : f32[4,4]  // _backbone.layer1, forward
  %add = add(%matmul, %layer1.bias) : f32[4,4]  // _backbone.layer1, forward
  %matmul.1 = matmul(%add, %layer2.weight) {transpose_b} : f32[4,3]  // _backbone.layer2, forward
  %add.1 = add(%matmul.1, %layer2.bias) : f32[4,3]  // _backbone.layer2, forward
  %softmax_cross_entropy = softmax_cross_entropy(%add.1, %input1) {ignore_index=-100, reduction="mean"} : f32[]  )"
                               R"(// _loss_fn, forward
} update sgd {lr=0.01, momentum=0.9}
)";
  EXPECT_EQ(Print(*module), expected);
  EXPECT_TRUE(Verify(*module).ok()) << Verify(*module);
}

TEST(Modules, InferenceHasTheNetworkWithoutItsLoss) {
  auto net = std::make_shared<TwoLayers>();
  Pipeline pipeline = TwoLayerPipeline(net);
  const absl::StatusOr<CellTree> tree = CellTree::Of(*pipeline.net_with_loss);
  ASSERT_TRUE(tree.ok()) << tree.status();
  const absl::StatusOr<Module> module = BuildInferenceModule(pipeline, *tree, {kBatch[0]}, PipelineConfig());
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(module->config.schedule, "forward");
  EXPECT_FALSE(module->graphs[0]->update.has_value());
  const std::string text = Print(*module);
  EXPECT_NE(text.find("graph @step(%input0: f32[4,6] {batch_axis=0}) -> (%add.1 {reduce=\"concat\"})"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("// _backbone.layer2, forward"), std::string::npos) << text;
  EXPECT_TRUE(Verify(*module).ok()) << Verify(*module);
}

TEST(Modules, AParameterThatTheOptimizerLacksIsNotTrained) {
  auto net = std::make_shared<TwoLayers>();
  Pipeline pipeline = TwoLayerPipeline(net);
  const absl::StatusOr<CellTree> tree = CellTree::Of(*pipeline.net_with_loss);
  ASSERT_TRUE(tree.ok()) << tree.status();
  const absl::StatusOr<Module> module = BuildTrainingModule(
      pipeline, *tree, Adam(std::vector<ParameterPtr>{net->layer1().weight}), kBatch, PipelineConfig());
  ASSERT_TRUE(module.ok()) << module.status();
  for (const Value* parameter : module->graphs[0]->parameters()) {
    EXPECT_EQ(parameter->trainable, parameter->parameter == "layer1.weight") << parameter->parameter;
  }
  EXPECT_EQ(AttributesToString(module->graphs[0]->update->attributes),
            "{beta1=0.9, beta2=0.999, eps=1e-08, lr=0.001, weight_decay=0.0}");
}

TEST(Modules, AdamWHasThePublishedDefaults) {
  const AdamW optimizer(TwoLayers().TrainableParams());
  EXPECT_EQ(optimizer.rule().op, "adamw");
  EXPECT_EQ(AttributesToString(optimizer.rule().attributes),
            "{beta1=0.9, beta2=0.999, eps=1e-08, lr=0.001, weight_decay=0.01}");
}

}  // namespace
}  // namespace pipeloom
