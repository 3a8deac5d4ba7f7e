#include "passes/outline_blocks.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "passes/chunk_values.h"
#include "passes/ir/op_table.h"
#include "passes/outline.h"

namespace pipeloom {
namespace {

constexpr size_t kLongestRun = 16;  // cells that are repeated together
constexpr size_t kFewestNodes = 2;  // of a block

// One cell among those side by side, or one node of the cell around them.
struct Item {
  Region::Member member;
  bool is_cell = false;
  int64_t code = 0;  // equal for items that compute the same
};

// So many items, so often one after the other.
struct Repetition {
  size_t length = 1;
  size_t repeats = 1;
};

// Whether fuse may draw the node into a product before it.
bool IsElementwise(const Node& node) {
  const OpDef* op = FindOp(node.op);
  return op != nullptr && op->traits.elementwise;
}

// Looks for regions in one graph, from the outermost cells inwards.
class RegionFinder {
 public:
  explicit RegionFinder(const Graph& graph) : graph_(graph), codes_(graph), uses_(ComputeUses(graph)) {}

  std::vector<Region> Run() {
    Search(0, graph_.nodes().size(), "");
    return std::move(regions_);
  }

 private:
  const Node& NodeAt(size_t at) const { return *graph_.nodes()[at]; }

  void Search(size_t begin, size_t end, const std::string& path) {
    const std::vector<Item> items = ItemsOf(begin, end, path);
    absl::flat_hash_map<int64_t, int> count;
    for (const Item& item : items) ++count[item.code];
    for (size_t at = 0; at < items.size();) {
      Repetition run = LongestRun(items, at);
      if (run.repeats > 1 && IsElementwiseOnly(items[at]) && LongestRun(items, at + 1).repeats > 1) run.repeats = 1;
      if (run.repeats > 1 && AddRun(items, at, run)) {
        at += run.length * run.repeats;
        continue;
      }
      const Item& item = items[at++];
      if (!item.is_cell) continue;
      if (count[item.code] > 1 && IsLargeEnough({{item.member}}) && !MayBeFusedWithWhatFollows(item.member)) {
        regions_.push_back({{item.member}});
      } else {
        Search(item.member.begin, item.member.end, item.member.cell);
      }
    }
  }

  // The nodes [begin, end), which lie in the cell `path`, by the cells right below it.
  std::vector<Item> ItemsOf(size_t begin, size_t end, const std::string& path) {
    std::vector<Item> items;
    for (size_t at = begin; at < end;) {
      const std::string& cell = NodeAt(at).info.cell;
      Item item{{at, at + 1, path}};
      if (cell.size() > path.size()) {
        item.member.cell = cell.substr(0, cell.find('.', path.empty() ? 0 : path.size() + 1));
        item.is_cell = true;
        while (item.member.end < end && IsIn(NodeAt(item.member.end).info.cell, item.member.cell)) ++item.member.end;
      }
      at = item.member.end;
      items.push_back(std::move(item));
    }
    Encode(items);
    return items;
  }

  static bool IsIn(absl::string_view path, absl::string_view cell) {
    return absl::StartsWith(path, cell) && (path.size() == cell.size() || path[cell.size()] == '.');
  }

  // Only items of as many nodes as another can be equal to one.
  void Encode(std::vector<Item>& items) {
    absl::flat_hash_map<size_t, int> of_size;
    for (const Item& item : items) ++of_size[item.member.end - item.member.begin];
    absl::flat_hash_map<std::vector<int64_t>, int64_t> known;
    int64_t next = 0;
    for (Item& item : items) {
      item.code = next++;
      if (of_size[item.member.end - item.member.begin] == 1 || !AllCanStandInABlock(item.member)) continue;
      item.code = known.emplace(codes_.Encode({{item.member}}), item.code).first->second;
    }
  }

  bool AllCanStandInABlock(const Region::Member& member) const {
    if (absl::StrContains(member.cell, ",")) return false;  // separates the cells of a call
    for (size_t at = member.begin; at < member.end; ++at) {
      if (!CanStandInABlock(NodeAt(at))) return false;
    }
    return true;
  }

  static Repetition LongestRun(const std::vector<Item>& items, size_t at) {
    Repetition best;
    for (size_t length = 1; length <= kLongestRun && at + 2 * length <= items.size(); ++length) {
      size_t end = at + length;
      while (end < items.size() && items[end].code == items[end - length].code) ++end;
      const size_t repeats = (end - at) / length;
      if (repeats > 1 && (best.repeats == 1 || repeats * length > best.repeats * best.length)) best = {length, repeats};
    }
    return best;
  }

  bool AddRun(const std::vector<Item>& items, size_t at, const Repetition& run) {
    std::vector<Region> found(run.repeats);
    for (size_t i = 0; i < run.length * run.repeats; ++i) {
      found[i / run.length].members.push_back(items[at + i].member);
    }
    if (!IsLargeEnough(found[0])) return false;
    regions_.insert(regions_.end(), found.begin(), found.end());
    return true;
  }

  bool IsLargeEnough(const Region& region) const {
    size_t nodes = 0;
    for (size_t at = region.begin(); at < region.end(); ++at) nodes += IsView(NodeAt(at)) ? 0 : 1;
    return nodes >= kFewestNodes;
  }

  bool IsElementwiseOnly(const Item& item) const {
    for (size_t at = item.member.begin; at < item.member.end; ++at) {
      if (!IsElementwise(NodeAt(at))) return false;
    }
    return true;
  }

  bool MayBeFusedWithWhatFollows(const Region::Member& member) const {
    const Node& last = NodeAt(member.end - 1);
    if (last.results.size() != 1 || (last.op != "matmul" && last.op != "add")) return false;
    const std::vector<Use>& readers = UsesOf(uses_, last.results[0]);
    return readers.size() == 1 && IsElementwise(*readers[0].node);
  }

  const Graph& graph_;
  RegionCodes codes_;
  const UseMap uses_;
  std::vector<Region> regions_;
};

}  // namespace

absl::StatusOr<bool> OutlineBlocks::Run(Module& module) const {
  bool changed = false;
  for (auto& graph : module.graphs) {
    if (graph->chunk) continue;
    const std::vector<Region> regions = RegionFinder(*graph).Run();
    changed |= OutlineRegions(module, *graph, regions, /*fewest_calls=*/2);
  }
  return changed;
}

}  // namespace pipeloom
