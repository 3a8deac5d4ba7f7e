// Text graph in, passes, text graph out: pl_opt [--passes=a,b] [--dump_dir=DIR] FILE ('-' or nothing: standard input).

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/parse.h"
#include "passes/ir/print.h"
#include "passes/pass_pipeline.h"
#include "passes/pipeline_parallel.h"

ABSL_FLAG(std::vector<std::string>, passes, {},
          "names of the passes to run, in this order; all of the list by default");
ABSL_FLAG(std::string, dump_dir, "", "directory for the text before the first pass and after each of them");

namespace pipeloom {
namespace {

absl::StatusOr<std::vector<std::unique_ptr<Pass>>> ChoosePasses(const std::vector<std::string>& names) {
  if (names.empty()) return PipelineParallelPasses();
  std::vector<std::unique_ptr<Pass>> chosen;
  for (const std::string& name : names) {
    std::vector<std::string> choices;
    const size_t before = chosen.size();
    for (std::unique_ptr<Pass>& pass : PipelineParallelPasses()) {
      choices.emplace_back(pass->name());
      if (pass->name() == name) chosen.push_back(std::move(pass));
    }
    if (chosen.size() == before) {
      return absl::InvalidArgumentError(
          absl::StrCat("--passes: unknown pass '", name, "'; choose of ", absl::StrJoin(choices, ", ")));
    }
  }
  return chosen;
}

absl::StatusOr<std::string> ReadText(const std::filesystem::path& path) {
  std::ifstream file;
  if (path != "-") file.open(path, std::ios::binary);
  std::istream& in = path == "-" ? std::cin : file;
  const std::string text(std::istreambuf_iterator<char>(in), {});
  if (!in) return absl::NotFoundError(absl::StrCat("cannot read ", path.string(), "; give a file or - for stdin"));
  return text;
}

absl::Status Run(const std::filesystem::path& path, const std::string& dump_dir) {
  ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Pass>> passes, ChoosePasses(absl::GetFlag(FLAGS_passes)));
  ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  absl::StatusOr<Module> module = Parse(text);
  if (!module.ok()) return Annotate(module.status(), path.string());
  RETURN_IF_ERROR(PassPipeline(std::move(passes)).Run(*module, dump_dir));
  std::cout << Print(*module);
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipeloom

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("pl_opt [--passes=a,b] [--dump_dir=DIR] FILE   text graph in, passes, text graph out");
  const std::vector<char*> arguments = absl::ParseCommandLine(argc, argv);
  // Under `bazel run` paths are meant from where the user stands.
  if (const char* directory = std::getenv("BUILD_WORKING_DIRECTORY")) std::filesystem::current_path(directory);
  const absl::Status status =
      arguments.size() > 2 ? absl::InvalidArgumentError("give one file at most")
                           : pipeloom::Run(arguments.size() == 2 ? arguments[1] : "-", absl::GetFlag(FLAGS_dump_dir));
  if (!status.ok()) std::cerr << "pl_opt: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
