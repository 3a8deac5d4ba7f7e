#ifndef PLUGIN_CELLS_LAYERS_H_
#define PLUGIN_CELLS_LAYERS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugin/cells/cell.h"

// Cells with MindSpore's names, parameter names and defaults.
namespace pipeloom {

// A list of cells named "0", "1", ..., for a cell that calls them one by one.
class CellList : public Cell {
 public:
  CellList() = default;
  explicit CellList(const std::vector<std::shared_ptr<Cell>>& cells);

  template <typename T>
  T& Append(std::shared_ptr<T> cell) {
    return AddCell(std::to_string(children().size()), std::move(cell));
  }
  template <typename T, typename... Args>
  T& Append(Args&&... args) {
    return Append(std::make_shared<T>(std::forward<Args>(args)...));
  }

  size_t size() const { return children().size(); }
  Cell& operator[](size_t place) const { return *children().at(place).cell; }

 protected:
  std::vector<Var> Construct(const std::vector<Var>& inputs) override;  // refuses: a list is not called
};

// Its cells one after the other.
class SequentialCell : public CellList {
 public:
  using CellList::CellList;

 protected:
  std::vector<Var> Construct(const std::vector<Var>& inputs) override;
};

struct DenseOptions {
  bool has_bias = true;
  std::optional<Initializer> weight_init;  // HeUniform(sqrt 5)
  std::optional<Initializer> bias_init;    // Uniform(1 / sqrt(in_channels))
};

// f32[..., in_channels] -> f32[..., out_channels]: x times the transposed weight, plus the bias.
class Dense : public Cell {
 public:
  Dense(int64_t in_channels, int64_t out_channels, const DenseOptions& options = {});

  ParameterPtr& weight;  // f32[out_channels, in_channels]

 protected:
  Var Construct(Var x) override;

 private:
  int64_t in_channels_;
  int64_t out_channels_;
  ParameterPtr* bias_ = nullptr;  // f32[out_channels]
};

// Ids of any shape, i32 or i64 -> f32[shape of the ids, embedding_size]: the row of the table for each id.
class Embedding : public Cell {
 public:
  Embedding(int64_t vocab_size, int64_t embedding_size, Initializer embedding_table = Normal());

  ParameterPtr& embedding_table;  // f32[vocab_size, embedding_size]

 protected:
  Var Construct(Var ids) override;
};

// [n, ...] -> [n, product of the others].
class Flatten : public Cell {
 protected:
  Var Construct(Var x) override;
};

class ReLU : public Cell {
 protected:
  Var Construct(Var x) override;
};

class GELU : public Cell {
 public:
  // `approximate`: by the tanh formula, else by erf.
  explicit GELU(bool approximate = true) : approximate_(approximate) {}

 protected:
  Var Construct(Var x) override;

 private:
  bool approximate_;
};

class Tanh : public Cell {
 protected:
  Var Construct(Var x) override;
};

// In training each element becomes 0 with probability `p`, else x / (1 - p); otherwise x itself. ops::Dropout says what
// decides which; the seed is that of SetSeed.
class Dropout : public Cell {
 public:
  explicit Dropout(double p = 0.5) : p_(p) {}

 protected:
  Var Construct(Var x) override;

 private:
  double p_;
};

// Prints `text` and what it is called with, and gives that: once a micro-batch, on the stage of the cell. Without a
// stage it prints on that of what it is called with, and a warning names the cell.
class Print : public Cell {
 public:
  explicit Print(std::string text = "") : text_(std::move(text)) {}

 protected:
  Var Construct(Var x) override;

 private:
  std::string text_;
};

// Along `axis`; a negative one counts from the last.
class Softmax : public Cell {
 public:
  explicit Softmax(int64_t axis = -1) : axis_(axis) {}

 protected:
  Var Construct(Var x) override;

 private:
  int64_t axis_;
};

// The logarithm of Softmax.
class LogSoftmax : public Cell {
 public:
  explicit LogSoftmax(int64_t axis = -1) : axis_(axis) {}

 protected:
  Var Construct(Var x) override;

 private:
  int64_t axis_;
};

// Over the last axes, whose extents are `normalized_shape`: to mean 0 and variance 1, with `epsilon` added to the
// variance, then times gamma, plus beta.
class LayerNorm : public Cell {
 public:
  explicit LayerNorm(const Shape& normalized_shape, double epsilon = 1e-7);

  ParameterPtr& gamma;  // f32[normalized_shape], ones
  ParameterPtr& beta;   // f32[normalized_shape], zeros

 protected:
  Var Construct(Var x) override;

 private:
  Shape normalized_shape_;
  double epsilon_;
};

}  // namespace pipeloom

#endif  // PLUGIN_CELLS_LAYERS_H_
