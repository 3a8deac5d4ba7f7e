#ifndef PLUGIN_CELLS_CELL_TREE_H_
#define PLUGIN_CELLS_CELL_TREE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "plugin/cells/cell.h"

namespace pipeloom {

// The cells and parameters of a network under their names, in the order of adding, a cell before those in it. A cell
// or parameter that stands at several places has the name of the first.
class CellTree {
 public:
  struct NamedCell {
    std::string path;  // "" for the root
    Cell* cell;
  };
  struct NamedParameter {
    std::string name;
    std::string cell;  // path of the cell that has it
    ParameterPtr parameter;
  };

  // InvalidArgument for an empty or dotted name, two things of one name in a cell, two parameters that come to one
  // name, and a null parameter. `root` must outlive the tree.
  static absl::StatusOr<CellTree> Of(Cell& root);

  const std::vector<NamedCell>& cells() const { return cells_; }
  const std::vector<NamedParameter>& parameters() const { return parameters_; }
  Cell& root() const { return *cells_.front().cell; }

  const std::string* PathOf(const Cell& cell) const;  // nullptr for a cell of another network
  // The cell of that path; an error names the nearest paths, or the path that the cell goes by.
  absl::StatusOr<Cell*> Find(const std::string& path) const;
  const NamedParameter* FindParameter(absl::string_view name) const;

 private:
  absl::Status Add(Cell& cell, const std::string& path, const std::string& prefix);
  absl::Status AddParameters(const Cell& cell, const std::string& path, const std::string& prefix);

  std::vector<NamedCell> cells_;
  std::vector<NamedParameter> parameters_;
  std::vector<std::pair<std::string, std::string>> aliases_;  // another path of a cell, and the path it goes by
  absl::flat_hash_map<const Cell*, std::string> path_of_;
};

}  // namespace pipeloom

#endif  // PLUGIN_CELLS_CELL_TREE_H_
