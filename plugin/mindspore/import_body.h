#ifndef PLUGIN_MINDSPORE_IMPORT_BODY_H_
#define PLUGIN_MINDSPORE_IMPORT_BODY_H_

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plugin/mindspore/anf.h"
#include "plugin/mindspore/graph_writer.h"
#include "plugin/mindspore/item.h"
#include "plugin/mindspore/node_kinds.h"

namespace pipeloom::ms {

// A graph of MindSpore's that is called from several places, written once.
struct Block {
  pipeloom_graph* graph = nullptr;
  std::vector<size_t> operands;  // the order in which a call's arguments are the block's inputs, then its parameters
  bool gives_tuple = false;
  std::vector<Type> results;
};

// What bodies need of the step that they are part of.
class StepContext {
 public:
  virtual ~StepContext() = default;
  // The block of a graph that is called; written when it is met for the first time.
  virtual const Block& BlockOf(const host::FuncGraphPtr& graph) = 0;
};

// Writes the nodes of one graph of MindSpore's: of the step, or of a block.
class BodyImport {
 public:
  BodyImport(const host::FuncGraphPtr& graph, StepContext* context);
  virtual ~BodyImport() = default;

 protected:
  // How often a node runs where it is read: what is free may be read by both, and then stands twice.
  enum class Pace { kMicro, kStep };

  // All nodes that are not free, and those that the output reads; what the output is.
  Item WriteNodes();
  // A leaf: what a parameter of MindSpore's graph is, and a slice of one.
  virtual Item ParameterItem(const host::ParameterPtr& parameter) = 0;
  virtual Item SliceItem(const host::CNodePtr& node) = 0;

  const host::FuncGraphPtr& graph() const { return graph_; }
  const std::vector<host::AnfNodePtr>& order() const { return order_; }
  GraphWriter& writer() { return *writer_; }
  void WriteTo(pipeloom_graph* graph) { writer_ = std::make_unique<GraphWriter>(graph); }
  Kind KindOf(const host::AnfNodePtr& node) const { return kinds_.at(node.get()); }
  // Which kind of node made the value; kForward for leaves.
  Kind KindOfValue(const Tensor& tensor) const;

 private:
  static Pace PaceOf(Kind kind) { return kind == Kind::kStep || kind == Kind::kFree ? Pace::kStep : Pace::kMicro; }

  const Item& ItemOf(const host::AnfNodePtr& node, Pace pace);
  Item MakeItem(const host::AnfNodePtr& node, Pace pace);
  std::vector<Item> Operands(const host::CNodePtr& node, Pace pace);
  Item CallItem(const host::CNodePtr& node, Pace pace);
  Item ElementItem(const host::CNodePtr& node, Pace pace);
  Item MergeItem(const host::CNodePtr& node);
  Item PassItem(const host::CNodePtr& node, Pace pace);
  std::string CellOf(const host::CNodePtr& node) const;
  Place PlaceOf(const host::CNodePtr& node, Pace pace);

  const host::FuncGraphPtr graph_;
  StepContext& context_;
  const std::vector<host::AnfNodePtr> order_;
  const std::unordered_map<const host::AnfNode*, Kind> kinds_;
  std::unique_ptr<GraphWriter> writer_;
  std::map<std::pair<const host::AnfNode*, Pace>, Item> items_;
  std::unordered_map<const host::AnfNode*, std::string> cell_;
  std::map<pipeloom_value, Kind> kind_of_value_;
};

}  // namespace pipeloom::ms

#endif  // PLUGIN_MINDSPORE_IMPORT_BODY_H_
