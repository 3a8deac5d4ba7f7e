#ifndef PLUGIN_MINDSPORE_ITEM_H_
#define PLUGIN_MINDSPORE_ITEM_H_

#include <optional>
#include <string>
#include <vector>

#include "plugin/mindspore/anf.h"
#include "plugin/mindspore/graph_writer.h"

namespace pipeloom::ms {

// What a node of MindSpore's graph is for the one that is written. Exactly one of tensor, constant and is_tuple is set;
// none for an order of effects (a monad).
struct Item {
  std::optional<Tensor> tensor;
  host::ValuePtr constant;
  bool is_tuple = false;
  std::vector<Item> elements;  // of a tuple

  // Of a tensor:
  std::string parameter;  // its name, where it is a parameter
  std::string reduce;     // how micro-batches make one of it, where a merge says so

  static Item Of(Tensor tensor) {
    Item item;
    item.tensor = std::move(tensor);
    return item;
  }
  static Item Of(host::ValuePtr constant) {
    Item item;
    item.constant = std::move(constant);
    return item;
  }
  static Item TupleOf(std::vector<Item> elements) {
    Item item;
    item.is_tuple = true;
    item.elements = std::move(elements);
    return item;
  }
};

}  // namespace pipeloom::ms

#endif  // PLUGIN_MINDSPORE_ITEM_H_
