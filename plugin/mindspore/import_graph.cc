#include "plugin/mindspore/import_graph.h"

#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "plugin/mindspore/import_body.h"
#include "plugin/mindspore/import_ops.h"

namespace pipeloom::ms {
namespace {

// How MindSpore names a parameter that a block takes from its callers.
constexpr char kFormalPrefix[] = "CR_";

// The stages of the marked cells.
void NoteStages(const std::vector<host::AnfNodePtr>& order, pipeloom_module* module) {
  std::map<std::string, int64_t> stage_of;
  for (const host::AnfNodePtr& node : order) {
    if (OpName(node) == kBorder) stage_of.emplace(StringAttribute(node, "cell"), IntAttribute(node, "stage"));
  }
  for (const auto& [cell, stage] : stage_of) {
    Check(pipeloom_module_set_stage(module, cell.c_str(), static_cast<int>(stage)));
  }
}

class BlockImport : public BodyImport {
 public:
  using BodyImport::BodyImport;

  Block Run(pipeloom_module* module, const std::string& name) {
    NoteStages(order(), module);
    Check(pipeloom_module_add_block(module, name.c_str(), &block_.graph));
    WriteTo(block_.graph);
    AddFormals(/*parameters=*/false);
    AddFormals(/*parameters=*/true);
    const Item result = WriteNodes();
    block_.gives_tuple = result.is_tuple;
    for (const Item& element : result.is_tuple ? result.elements : std::vector<Item>{result}) AddResult(element);
    return std::move(block_);
  }

 private:
  void AddFormals(bool parameters) {
    size_t place = 0;
    for (const host::AnfNodePtr& node : graph()->parameters()) {
      if (IsEffectOrder(node)) continue;
      const size_t argument = place++;
      const auto formal = node->cast<host::ParameterPtr>();
      if (node->abstract()->isa<host::abstract::AbstractRefTensor>() != parameters) continue;
      std::string name = formal->name();
      if (name.rfind(kFormalPrefix, 0) == 0) name = name.substr(sizeof(kFormalPrefix) - 1);
      const Type type = TypeOf(node->abstract());
      block_.operands.push_back(argument);
      Item item = Item::Of(parameters ? writer().AddParameter(name, type, /*trainable=*/false)
                                      : writer().AddInput(name, type, /*batched=*/false));
      leaves_.insert(item.tensor->value);
      formals_.emplace(node.get(), std::move(item));
    }
  }

  Item ParameterItem(const host::ParameterPtr& parameter) override { return formals_.at(parameter.get()); }

  Item SliceItem(const host::CNodePtr& node) override {
    throw Refused(Describe(node) + " cuts micro-batches in a cell that is lazily inlined; use Pipeline around it");
  }

  // What a block gives is a result of its own, once.
  void AddResult(const Item& item) {
    if (!item.tensor) throw Refused("a lazily inlined cell returns what is no tensor");
    const bool own = leaves_.insert(item.tensor->value).second;
    const Tensor result = own ? *item.tensor : writer().Add("copy", {*item.tensor}, item.tensor->type, {}, Place());
    writer().AddOutput(result, "");
    block_.results.push_back(result.type);
  }

  Block block_;
  std::unordered_map<const host::AnfNode*, Item> formals_;
  std::set<pipeloom_value> leaves_;  // and what is given already
};

class StepImport : public BodyImport, private StepContext {
 public:
  StepImport(const host::FuncGraphPtr& graph, const Options& options)
      : BodyImport(graph, static_cast<StepContext*>(this)), options_(options) {}

  ImportedStep Run() {
    ReadMarks();
    CreateModule();
    NoteParameters();
    step_.result = ResultOf(WriteNodes());
    return std::move(step_);
  }

 private:
  // The number of micro-batches, what the graph writes and whether it trains.
  void ReadMarks() {
    for (const host::AnfNodePtr& node : order()) {
      if (!node->isa<host::CNode>()) continue;
      const std::string op = OpName(node);
      if (op == kSlice || op == kMerge) NoteMicroBatches(node);
      trains_ = trains_ || KindOf(node) == Kind::kBackward;
      if (!WritesParameter(op)) continue;
      const auto written = node->cast<host::CNodePtr>()->input(1)->cast<host::ParameterPtr>();
      if (written == nullptr) throw Refused(Describe(node) + " writes what is no parameter of the network");
      written_.insert(written->name());
    }
  }

  void NoteMicroBatches(const host::AnfNodePtr& node) {
    const int64_t count = IntAttribute(node, "micro");
    if (micro_batches_ != 0 && micro_batches_ != count) {
      throw Refused("the graph has pipelines of " + std::to_string(micro_batches_) + " and of " +
                    std::to_string(count) + " micro-batches; use one Pipeline a step");
    }
    micro_batches_ = count;
  }

  void CreateModule() {
    pipeloom_config config;
    pipeloom_config_init(&config);
    config.stages = options_.stages;
    config.micro_batches = micro_batches_ == 0 ? 1 : static_cast<int>(micro_batches_);
    const std::string schedule = !trains_ ? "forward" : options_.schedule.empty() ? "1f1b" : options_.schedule;
    config.schedule = schedule.c_str();
    config.threads = options_.threads;
    pipeloom_module* module = nullptr;
    Check(pipeloom_module_create(&config, &module));
    step_.module.reset(module);
    NoteStages(order(), module);
    pipeloom_graph* graph = nullptr;
    Check(pipeloom_module_add_graph(module, "step", &graph));
    WriteTo(graph);
  }

  void NoteParameters() {
    for (const host::AnfNodePtr& node : graph()->parameters()) {
      const auto parameter = node->cast<host::ParameterPtr>();
      place_of_parameter_[node.get()] = step_.parameters.size();
      step_.parameters.push_back(parameter->has_default() ? parameter->name() : "");
      step_.parameter_types.push_back(IsTensor(node->abstract()) ? TypeOf(node->abstract()) : Type());
    }
  }

  const Block& BlockOf(const host::FuncGraphPtr& graph) override {
    const auto known = blocks_.find(graph.get());
    if (known != blocks_.end()) return known->second;
    const std::string name = "block." + std::to_string(blocks_.size());
    return blocks_[graph.get()] = BlockImport(graph, this).Run(step_.module.get(), name);
  }

  Item ParameterItem(const host::ParameterPtr& parameter) override {
    const size_t place = place_of_parameter_.at(parameter.get());
    if (!parameter->has_default()) {
      step_.inputs.push_back(place);
      const Type type = TypeOf(parameter->abstract());
      // Where the host cuts micro-batches itself, roll_micro_batches finds them along this axis.
      return Item::Of(writer().AddInput(parameter->name(), type, micro_batches_ <= 1 && !type.shape.empty()));
    }
    const std::string& name = step_.parameters[place];
    Item item = Item::Of(writer().AddParameter(name, TypeOf(parameter->abstract()), written_.count(name) > 0));
    item.parameter = name;
    return item;
  }

  Item SliceItem(const host::CNodePtr& node) override {
    const auto input = node->input(1)->cast<host::ParameterPtr>();
    if (input == nullptr || input->has_default()) {
      throw Refused(Describe(node) +
                    ": micro-batches are cut from arguments of the step; pass the tensor to it as it is");
    }
    const auto known = slices_.find(input.get());
    if (known != slices_.end()) return known->second;
    step_.inputs.push_back(place_of_parameter_.at(input.get()));
    Item item = Item::Of(writer().AddInput(input->name(), TypeOf(node->abstract()), /*batched=*/true));
    return slices_.emplace(input.get(), std::move(item)).first->second;
  }

  Result ResultOf(const Item& item) {
    Result result;
    result.is_tuple = item.is_tuple;
    for (const Item& element : item.elements) result.elements.push_back(ResultOf(element));
    result.parameter = item.parameter;
    result.constant = item.constant;
    if (!item.tensor || !item.parameter.empty()) return result;
    const auto [known, added] = output_of_value_.emplace(item.tensor->value, static_cast<int>(output_of_value_.size()));
    result.output = known->second;
    if (added) writer().AddOutput(*item.tensor, ReduceOf(item));
    return result;
  }

  const char* ReduceOf(const Item& item) const {
    if (item.reduce == "concat") return "concat";
    if (item.reduce == "sum") return "sum";
    const Kind made = KindOfValue(*item.tensor);
    if (made == Kind::kStep || made == Kind::kFree) return "once";
    if (made == Kind::kBackward) return "sum";
    if (micro_batches_ > 1) {
      throw Refused("the step returns a tensor " + item.tensor->type.ToString() +
                    " that every micro-batch has another " + "one of; return what the Pipeline returns");
    }
    return item.tensor->type.shape.empty() ? "sum" : "concat";
  }

  const Options& options_;
  int64_t micro_batches_ = 0;
  bool trains_ = false;
  std::set<std::string> written_;
  std::unordered_map<const host::AnfNode*, size_t> place_of_parameter_;
  std::unordered_map<const host::FuncGraph*, Block> blocks_;
  std::unordered_map<const host::AnfNode*, Item> slices_;
  std::map<pipeloom_value, int> output_of_value_;
  ImportedStep step_;
};

}  // namespace

ImportedStep ImportGraph(const host::FuncGraphPtr& graph, const Options& options) {
  return StepImport(graph, options).Run();
}

}  // namespace pipeloom::ms
