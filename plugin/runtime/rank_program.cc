#include "plugin/runtime/rank_program.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace pipeloom {
namespace {

constexpr absl::string_view kSpaceNames[] = {"buffer", "send", "receive", "input", "parameter", "constant"};
constexpr absl::string_view kLaunchNames[] = {"kernel", "accumulate", "concat", "send", "receive", "micro_batch"};

std::string RefToString(const OperandRef& ref) {
  std::string text = absl::StrCat(kSpaceNames[static_cast<int>(ref.space)], " ", ref.index);
  if (ref.slots > 1) absl::StrAppend(&text, " x ", ref.slots, " every ", ref.stride);
  if (ref.first_apart) text += " first_apart";
  if (ref.per_group) text += " per_group";
  return text;
}

std::string TypesToString(const std::vector<TensorType>& types) {
  return absl::StrJoin(types, ", ",
                       [](std::string* out, const TensorType& type) { absl::StrAppend(out, type.ToString()); });
}

std::string LaunchToString(const Launch& launch) {
  std::string text = absl::StrCat("    ", kLaunchNames[static_cast<int>(launch.kind)]);
  if (launch.kind == Launch::Kind::kKernel) {
    absl::StrAppend(&text, " ", launch.spec.op, AttributesToString(launch.spec.attributes), " (",
                    TypesToString(launch.spec.inputs), ") -> (", TypesToString(launch.spec.outputs), ")");
  }
  if (launch.tail) absl::StrAppend(&text, ", at last (", TypesToString(launch.tail->inputs), ")");
  if (launch.channel >= 0) absl::StrAppend(&text, " channel ", launch.channel);
  if (launch.group > 1) absl::StrAppend(&text, " each ", launch.group, " micro-batches");
  absl::StrAppend(&text, " [", absl::StrJoin(launch.operands, "; ", [](std::string* out, const OperandRef& ref) {
    absl::StrAppend(out, RefToString(ref));
  }));
  return absl::StrCat(text, "]  // ", launch.place, "\n");
}

// All digits, since programs are compared by their text.
std::string ElementsToString(const std::vector<double>& elements) {
  return absl::StrJoin(elements, " ",
                       [](std::string* out, double element) { absl::StrAppendFormat(out, "%.17g", element); });
}

std::string ChannelToString(const RankChannel& channel) {
  std::string text = absl::StrCat(
      channel.sends ? "send %" : "receive %", channel.spec.name, " rank ", channel.spec.source.value(), " -> rank ",
      channel.spec.destination.value(), ", tag ", channel.spec.tag.value(), ", ", channel.spec.slots, " x ",
      channel.spec.bytes, " bytes, ",
      channel.spec.round == ChannelSpec::kOneRound ? "" : absl::StrCat("rounds of ", channel.spec.round, ", "),
      std::string(1, PartLetter(channel.part)));
  if (channel.sends) {
    absl::StrAppend(&text, channel.direct ? ", made in the slot"
                                          : absl::StrCat(", copied from ", RefToString(channel.copied_from)));
  } else {
    absl::StrAppend(&text, ", released after ", std::string(1, PartLetter(channel.released_after)));
    if (channel.group > 1) absl::StrAppend(&text, " of ", channel.group);
  }
  return text;
}

}  // namespace

std::string RankProgramToString(const RankProgram& program) {
  std::string text = absl::StrCat("rank ", program.rank.value(), " of ", program.ranks, ", ", program.micro_batches,
                                  " micro-batches, ", program.threads, " threads\n");
  for (size_t i = 0; i < program.parameters.size(); ++i) {
    absl::StrAppend(&text, "  parameter ", i, ": ", program.parameters[i].name, " ",
                    program.parameters[i].type.ToString(), "\n");
  }
  for (size_t i = 0; i < program.constants.size(); ++i) {
    absl::StrAppend(&text, "  constant ", i, ": ", program.constants[i].type.ToString(), " ",
                    ElementsToString(program.constants[i].elements), "\n");
  }
  for (size_t i = 0; i < program.channels.size(); ++i) {
    absl::StrAppend(&text, "  channel ", i, ": ", ChannelToString(program.channels[i]), "\n");
  }
  for (const ChunkProgram& chunk : program.chunks) {
    absl::StrAppend(&text, "  chunk ", chunk.chunk.value(), ", buffers of ", absl::StrJoin(chunk.buffers, ", "),
                    " bytes\n");
    for (Part part : kParts) {
      const std::vector<Launch>& launches = chunk.launches[static_cast<size_t>(part)];
      if (launches.empty()) continue;
      absl::StrAppend(&text, "   ", std::string(1, PartLetter(part)), "\n");
      for (const Launch& launch : launches) text += LaunchToString(launch);
    }
  }
  for (const OutputRef& output : program.outputs) {
    absl::StrAppend(&text, "  output ", output.index, ": ", output.type.ToString(), " from ", RefToString(output.from),
                    "\n");
  }
  for (const ScalarOutput& scalar : program.scalars) {
    absl::StrAppend(&text, "  scalar output ", scalar.index, " of rank ", scalar.owner.value(), "\n");
  }
  absl::StrAppend(&text, "  ", absl::StrJoin(program.actions, " ", [](std::string* out, const Action& action) {
    absl::StrAppend(out, ActionToString(action));
  }));
  return text + "\n";
}

}  // namespace pipeloom
