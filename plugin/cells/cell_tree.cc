#include "plugin/cells/cell_tree.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/nearest_names.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

std::string Quoted(absl::string_view path) {
  return path.empty() ? "the outermost cell" : absl::StrCat("cell '", path, "'");
}

absl::Status CheckNames(const Cell& cell, absl::string_view path) {
  std::vector<std::string> names;
  for (const Cell::NamedParameter& named : cell.parameters()) names.push_back(named.name);
  for (const Cell::Child& child : cell.children()) names.push_back(child.name);
  absl::flat_hash_set<std::string> seen;
  for (const std::string& name : names) {
    if (name.empty() || name.find('.') != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(Quoted(path), " has a child or parameter named '", name,
                                                     "'; a name has at least one character and no dot"));
    }
    if (!seen.insert(name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(path), " has two children or parameters named '", name, "'; rename one"));
    }
  }
  return absl::OkStatus();
}

// At most three of `paths`, the nearest first. The end of a path is as near as the whole: people forget a _backbone.
std::string NearestPaths(absl::string_view wanted, const std::vector<std::string>& paths) {
  std::vector<std::string> ends;
  absl::flat_hash_map<std::string, std::string> path_of_end;
  for (const std::string& path : paths) {
    for (size_t begin = 0; begin != std::string::npos; begin = path.find('.', begin)) {
      if (begin > 0) ++begin;
      if (path_of_end.emplace(path.substr(begin), path).second) ends.push_back(path.substr(begin));
    }
  }
  std::vector<std::string> nearest;
  for (const std::string& end : NearestFirst(wanted, ends)) {
    const std::string& path = path_of_end[end];
    if (std::find(nearest.begin(), nearest.end(), path) == nearest.end()) nearest.push_back(path);
    if (nearest.size() == 3) break;
  }
  return absl::StrJoin(nearest, ", ");
}

}  // namespace

absl::StatusOr<CellTree> CellTree::Of(Cell& root) {
  CellTree tree;
  RETURN_IF_ERROR(tree.Add(root, "", ""));
  return tree;
}

absl::Status CellTree::Add(Cell& cell, const std::string& path, const std::string& prefix) {
  if (const auto [it, added] = path_of_.emplace(&cell, path); !added) {
    aliases_.emplace_back(path, it->second);
    return absl::OkStatus();
  }
  cells_.push_back({path, &cell});
  RETURN_IF_ERROR(CheckNames(cell, path));
  RETURN_IF_ERROR(AddParameters(cell, path, prefix));
  for (const Cell::Child& child : cell.children()) {
    RETURN_IF_ERROR(Add(*child.cell, path.empty() ? child.name : absl::StrCat(path, ".", child.name),
                        cell.auto_prefix() ? absl::StrCat(prefix, child.name, ".") : prefix));
  }
  return absl::OkStatus();
}

absl::Status CellTree::AddParameters(const Cell& cell, const std::string& path, const std::string& prefix) {
  for (const Cell::NamedParameter& named : cell.parameters()) {
    if (named.parameter == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(path), ": parameter '", named.name, "' is null; assign the parameter of another cell"));
    }
    if (std::any_of(parameters_.begin(), parameters_.end(),
                    [&](const NamedParameter& other) { return other.parameter == named.parameter; })) {
      continue;
    }
    const std::string name = prefix + named.name;
    const Shape& shape = named.parameter->shape();
    if (std::any_of(shape.begin(), shape.end(), [](int64_t extent) { return extent < 1; })) {
      return absl::InvalidArgumentError(absl::StrCat(Quoted(path), ": parameter '", name, "' has extents ",
                                                     ShapeToString(shape), "; give sizes of 1 or more"));
    }
    if (const NamedParameter* other = FindParameter(name); other != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(Quoted(other->cell), " and ", Quoted(path),
                                                     " both have a parameter that comes to the name '", name,
                                                     "'; rename one"));
    }
    parameters_.push_back({name, path, named.parameter});
  }
  return absl::OkStatus();
}

const std::string* CellTree::PathOf(const Cell& cell) const {
  auto it = path_of_.find(&cell);
  return it == path_of_.end() ? nullptr : &it->second;
}

absl::StatusOr<Cell*> CellTree::Find(const std::string& path) const {
  std::vector<std::string> paths;
  for (const NamedCell& named : cells_) {
    if (named.path == path) return named.cell;
    if (!named.path.empty()) paths.push_back(named.path);
  }
  for (const auto& [alias, first] : aliases_) {
    if (alias == path) {
      return absl::InvalidArgumentError(absl::StrCat("cell '", path, "' is the same cell as '", first,
                                                     "' and goes by that path; give '", first, "'"));
    }
  }
  return absl::NotFoundError(
      absl::StrCat("the network has no cell '", path, "'; the nearest of its paths: ", NearestPaths(path, paths)));
}

const CellTree::NamedParameter* CellTree::FindParameter(absl::string_view name) const {
  for (const NamedParameter& named : parameters_) {
    if (named.name == name) return &named;
  }
  return nullptr;
}

}  // namespace pipeloom
