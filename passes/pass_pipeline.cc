#include "passes/pass_pipeline.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/base/file_io.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/print.h"
#include "passes/ir/verify.h"

namespace pipeloom {
namespace {

absl::Status FileError(absl::string_view what, const std::filesystem::path& path, const std::error_code& error) {
  return absl::InternalError(
      absl::StrCat("cannot ", what, " ", path.string(), ": ", error.message(), "; give another dump directory"));
}

absl::Status Dump(const Module& module, const std::string& dump_dir, int number, absl::string_view name) {
  if (dump_dir.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(dump_dir, error);
  if (error) return FileError("make directory", dump_dir, error);
  return WriteFileAtomically(absl::StrFormat("%s/%02d_%s.txt", dump_dir, number, name), {Print(module)});
}

absl::StatusOr<bool> RunAndCheck(const Pass& pass, Module& module) {
  ASSIGN_OR_RETURN(const bool changed, pass.Run(module));
  absl::Status sound = Verify(module);
  if (sound.ok()) sound = pass.CheckAfter(module);
  if (!sound.ok()) return absl::InternalError(absl::StrCat("afterwards, ", sound.message()));
  return changed;
}

}  // namespace

absl::StatusOr<bool> RunPass(const Pass& pass, Module& module) {
  absl::StatusOr<bool> changed = RunAndCheck(pass, module);
  if (!changed.ok()) return Annotate(changed.status(), absl::StrCat("pass ", pass.name()));
  return changed;
}

absl::Status PassPipeline::Run(Module& module, const std::string& dump_dir, const Observer& after) const {
  RETURN_IF_ERROR(Annotate(Verify(module), "before all passes"));
  RETURN_IF_ERROR(Dump(module, dump_dir, 0, "input"));
  int number = 0;
  for (const std::unique_ptr<Pass>& pass : passes_) {
    RETURN_IF_ERROR(RunPass(*pass, module).status());
    RETURN_IF_ERROR(Dump(module, dump_dir, ++number, pass->name()));
    if (after != nullptr) after(*pass, module);
  }
  return absl::OkStatus();
}

}  // namespace pipeloom
