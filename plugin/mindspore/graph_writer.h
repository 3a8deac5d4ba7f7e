#ifndef PLUGIN_MINDSPORE_GRAPH_WRITER_H_
#define PLUGIN_MINDSPORE_GRAPH_WRITER_H_

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "plugin/c_api/pipeloom.h"

namespace pipeloom::ms {

// What a graph of MindSpore asks for and Pipeloom refuses; the backend hands the text on as MindSpore's own exception.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws Refused with the library's own text unless `code` is PIPELOOM_OK.
void Check(int code);

struct Type {
  int dtype = PIPELOOM_F32;
  std::vector<int64_t> shape;

  friend bool operator==(const Type& a, const Type& b) { return a.dtype == b.dtype && a.shape == b.shape; }
  int64_t num_elements() const;
  int64_t bytes() const;
  std::string ToString() const;  // f32[8,512]
  pipeloom_type View() const { return {dtype, static_cast<int>(shape.size()), shape.data()}; }
};

// A value of the step graph that is being written.
struct Tensor {
  pipeloom_value value = 0;
  Type type;
};

using Attribute = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>>;
using Attributes = std::map<std::string, Attribute>;

// Where a node belongs: the fields of pipeloom_node.
struct Place {
  std::string cell;
  int phase = PIPELOOM_FORWARD;
  int rate = PIPELOOM_RATE_USUAL;
};

// Writes one graph of a module through the C boundary.
class GraphWriter {
 public:
  explicit GraphWriter(pipeloom_graph* graph) : graph_(graph) {}

  Tensor AddInput(const std::string& name, const Type& type, bool batched);
  Tensor AddParameter(const std::string& name, const Type& type, bool trainable);
  // Of one element that all are equal to, or of all elements.
  Tensor AddConstant(const Type& type, const std::vector<double>& elements);
  // A node with one result of the type that it has by the op table, which is checked.
  Tensor Add(const std::string& op, const std::vector<Tensor>& operands, const Type& result,
             const Attributes& attributes, const Place& place);
  // With any number of results, none for updates.
  std::vector<Tensor> AddNode(const std::string& op, const std::vector<Tensor>& operands,
                              const std::vector<Type>& results, const Attributes& attributes, const Place& place);
  // A node that calls `block`, on its inputs, then its parameters.
  std::vector<Tensor> AddCall(const pipeloom_graph* block, const std::vector<Tensor>& operands,
                              const std::vector<Type>& results, const Place& place);
  void AddOutput(const Tensor& value, const char* reduce);

 private:
  pipeloom_graph* graph_;
};

}  // namespace pipeloom::ms

#endif  // PLUGIN_MINDSPORE_GRAPH_WRITER_H_
