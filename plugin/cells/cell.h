#ifndef PLUGIN_CELLS_CELL_H_
#define PLUGIN_CELLS_CELL_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/status_macros.h"
#include "plugin/cells/parameter.h"
#include "plugin/cells/var.h"

namespace pipeloom {

// A part of a network, as MindSpore's nn.Cell: it has named parameters and named children, and Construct says what it
// computes. A new one takes a few lines:
//
//   class MatMulCell : public Cell {
//    public:
//     MatMulCell(int64_t in, int64_t out) : param_(AddParameter("param", {in, out}, HeUniform(std::sqrt(5.0)))) {}
//     Var Construct(Var x) override { return ops::MatMul(x, param_); }
//
//    private:
//     ParameterPtr& param_;
//   };
//
// Names joined by dots are the path of a cell, such as _backbone.layer1, and the name of a parameter.
class Cell {
 public:
  virtual ~Cell() = default;
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;

  // Called to use the cell, from another cell's Construct. A cell that is used twice computes with the same parameters.
  Var operator()(Var x);
  Var operator()(Var x, Var y);
  std::vector<Var> operator()(const std::vector<Var>& inputs);

  // As MindSpore's attribute pipeline_stage: the stage of this cell and of all in it that have none of their own.
  void SetPipelineStage(int stage) { pipeline_stage_ = stage; }
  std::optional<int> pipeline_stage() const { return pipeline_stage_; }
  // As MindSpore's decorator lazy_inline: each use of the cell stays a call of one body through the passes. Cells that
  // are repeated side by side do so without being asked to; in a cell that does, others have no say.
  void SetLazyInline() { lazy_inline_ = true; }
  bool lazy_inline() const { return lazy_inline_; }
  // These reach all parameters of this cell and of the cells in it; the seed reaches the cells too, for what they draw.
  void SetRequiresGrad(bool requires_grad);
  void SetSeed(uint64_t seed);
  uint64_t seed() const { return seed_; }

  // In the order of adding, the cell's own before those of the cells in it; each once.
  std::vector<ParameterPtr> Parameters() const;
  // Those that require a gradient.
  std::vector<ParameterPtr> TrainableParams() const;

  struct Child {
    std::string name;
    std::shared_ptr<Cell> cell;
  };
  struct NamedParameter {
    std::string name;
    ParameterPtr parameter;
  };
  const std::vector<Child>& children() const { return children_; }
  const std::deque<NamedParameter>& parameters() const { return parameters_; }
  // Whether the names of the children stand in the names of their parameters, as MindSpore's auto_prefix.
  bool auto_prefix() const { return auto_prefix_; }

 protected:
  Cell() = default;
  explicit Cell(bool auto_prefix) : auto_prefix_(auto_prefix) {}

  // What the cell computes: one of these is overridden. The last one gets what the others do not take, and by default
  // hands on to them.
  virtual Var Construct(Var x);
  virtual Var Construct(Var x, Var y);
  virtual std::vector<Var> Construct(const std::vector<Var>& inputs);

  // The reference stays valid as long as the cell. Assigning to it makes this cell use the other parameter:
  // head.weight = embedding.weight ties the two.
  ParameterPtr& AddParameter(std::string name, Shape shape, Initializer initializer);
  template <typename T>
  T& AddCell(std::string name, std::shared_ptr<T> cell) {
    PIPELOOM_CHECK(cell != nullptr, "child ", name, " of a cell is null");
    T& added = *cell;
    children_.push_back({std::move(name), std::move(cell)});
    return added;
  }
  template <typename T, typename... Args>
  T& AddCell(std::string name, Args&&... args) {
    return AddCell(std::move(name), std::make_shared<T>(std::forward<Args>(args)...));
  }

 private:
  friend class BuildContext;

  void CollectParameters(std::vector<ParameterPtr>& collected) const;

  bool auto_prefix_ = true;
  std::optional<int> pipeline_stage_;
  uint64_t seed_ = 0;
  bool lazy_inline_ = false;
  std::vector<Child> children_;
  std::deque<NamedParameter> parameters_;  // a deque keeps references when it grows
};

}  // namespace pipeloom

#endif  // PLUGIN_CELLS_CELL_H_
