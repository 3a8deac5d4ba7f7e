// The sample as its users run it: what it prints and writes, that layouts do not change a bit, and what it refuses.
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/file_io.h"
#include "plugin/cells/safetensors.h"
#include "samples/mnist_network.h"

namespace pipeloom {
namespace {

using ::testing::HasSubstr;

constexpr char kDigits[] = "third_party/mnist_digits";

struct Result {
  int exit_code;
  std::string out;
  std::string err;
};

std::string Path(const std::string& name) { return absl::StrCat(testing::TempDir(), "/", name); }

std::string Contents(const std::string& path) {
  const absl::StatusOr<std::string> contents = ReadFile(path);
  EXPECT_TRUE(contents.ok()) << contents.status();
  return contents.value_or("");
}

Result RunSample(const std::string& flags) {
  const std::string command =
      absl::StrCat("samples/mnist_pipeline ", flags, " >", Path("out"), " 2>", Path("err"), " </dev/null");
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, Contents(Path("out")), Contents(Path("err"))};
}

// Losses and weights of a run, as bytes.
std::string FilesOf(const std::string& flags) {
  const Result result =
      RunSample(absl::StrCat(flags, " --losses_out=", Path("losses"), " --weights_out=", Path("weights")));
  EXPECT_EQ(result.exit_code, 0) << flags << "\n" << result.err;
  return Contents(Path("losses")) + Contents(Path("weights"));
}

TEST(MnistPipeline, TrainsAboveNinetyPercentAndSaysHow) {
  const Result result = RunSample(absl::StrCat("--losses_out=", Path("losses")));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const std::vector<std::string> lines = absl::StrSplit(result.out, '\n', absl::SkipEmpty());
  const std::vector<std::string> losses = absl::StrSplit(Contents(Path("losses")), '\n', absl::SkipEmpty());
  ASSERT_EQ(losses.size(), 10u * 125u);  // 4,000 digits, 32 a step

  // The table: a heading, and a line a stage.
  ASSERT_GE(lines.size(), 3u);
  EXPECT_THAT(lines[1], HasSubstr("layer1.param"));
  EXPECT_THAT(lines[2], HasSubstr("layer3.bias"));
  size_t next = 3;
  for (size_t step = 0; step < losses.size(); ++step) {
    double loss = 0.0;
    ASSERT_TRUE(absl::SimpleAtod(losses[step], &loss)) << losses[step];
    if (step % 125 % 10 != 0) continue;
    char expected[100];
    std::snprintf(expected, sizeof(expected), "epoch: %zu step: %zu, loss is %.6f", step / 125, step % 125, loss);
    ASSERT_LT(next, lines.size());
    EXPECT_EQ(lines[next++], expected);
  }
  ASSERT_EQ(next, lines.size() - 1);
  std::smatch match;
  ASSERT_TRUE(
      std::regex_match(lines[next], match, std::regex(R"(test accuracy is (\d\.\d{4}) \((\d+) of 1000 digits\))")))
      << lines[next];
  EXPECT_GT(std::stod(match[1]), 0.90);
  EXPECT_NEAR(std::stod(match[1]), std::stod(match[2]) / 1000, 1e-6);
}

TEST(MnistPipeline, LayoutsDoNotChangeABit) {
  for (const char* optimizer : {"sgd", "adam"}) {
    const std::string common = absl::StrCat(" --steps=12 --optimizer=", optimizer);
    const std::string one = FilesOf(absl::StrCat("--stages=1", common));
    EXPECT_GT(one.size(), 2000000u);
    for (int stages : {1, 2, 3}) {
      for (const char* schedule : {"gpipe", "1f1b"}) {
        const std::string layout = absl::StrCat("--stages=", stages, " --schedule=", schedule);
        EXPECT_TRUE(FilesOf(layout + common) == one) << layout << common;
      }
    }
    EXPECT_FALSE(FilesOf(absl::StrCat("--seed=2", common)) == one);
  }
}

TEST(MnistPipeline, EveryNumberOfCellsAStageWorks) {
  const std::string one = FilesOf("--stages=1 --steps=3");
  for (int stages : {4, 5, 6}) EXPECT_TRUE(FilesOf(absl::StrCat("--stages=", stages, " --steps=3")) == one) << stages;
}

TEST(MnistPipeline, WithoutStepsTheWeightsAreTheInitialValues) {
  ASSERT_EQ(RunSample(absl::StrCat("--steps=0 --seed=9 --weights_out=", Path("initial"))).exit_code, 0);
  const absl::StatusOr<TensorMap> weights = ReadSafetensors(Path("initial"));
  ASSERT_TRUE(weights.ok()) << weights.status();
  Network network;
  network.SetSeed(9);
  const absl::StatusOr<CellTree> tree = CellTree::Of(network);
  ASSERT_TRUE(tree.ok()) << tree.status();
  ASSERT_EQ(weights->size(), 5u);
  for (const CellTree::NamedParameter& named : tree->parameters()) {
    ASSERT_EQ(weights->count(named.name), 1u) << named.name;
    const Tensor expected = named.parameter->InitialValue(named.name);
    const Tensor& actual = weights->at(named.name);
    ASSERT_EQ(actual.type(), expected.type()) << named.name;
    EXPECT_TRUE(std::equal(expected.data<float>(), expected.data<float>() + expected.type().num_elements(),
                           actual.data<float>()))
        << named.name;
  }
}

TEST(MnistPipeline, MeanIsTheSumOverTheMicroBatches) {
  const auto first_loss = [](const std::string& reduction) {
    RunSample(absl::StrCat("--steps=1 --loss_reduction=", reduction, " --losses_out=", Path("losses")));
    return std::stod(Contents(Path("losses")));
  };
  EXPECT_NEAR(first_loss("sum"), 4 * first_loss("mean"), 1e-5);
}

TEST(MnistPipeline, DumpsTheGraphsOfBothPrograms) {
  mkdir(Path("dump").c_str(), 0777);
  ASSERT_EQ(RunSample(absl::StrCat("--steps=0 --dump_dir=", Path("dump"))).exit_code, 0);
  EXPECT_THAT(Contents(Path("dump/step_0/00_input.txt")), HasSubstr("update sgd {lr=0.01}"));
  EXPECT_THAT(Contents(Path("dump/predict_0/00_input.txt")), HasSubstr("schedule=\"forward\""));
}

TEST(MnistPipeline, ListsItsFlags) {
  const Result result = RunSample("--help");
  for (const char* flag : {"stages", "micro_batches", "batch_size", "schedule", "epochs", "steps", "seed", "lr",
                           "optimizer", "losses_out", "weights_out", "dump_dir", "data_dir", "loss_reduction"}) {
    EXPECT_THAT(result.out, HasSubstr(absl::StrCat("--", flag, " ("))) << flag;
  }
}

void ExpectRefusal(const std::string& flags, const std::string& message) {
  const Result result = RunSample(flags);
  EXPECT_EQ(result.exit_code, 1) << flags;
  EXPECT_THAT(result.err, HasSubstr(message)) << flags;
  EXPECT_EQ(result.out.find("epoch:"), std::string::npos) << flags << " got to a step:\n" << result.out;
}

TEST(MnistPipeline, RefusesBadFlagsBeforeTheFirstStep) {
  ExpectRefusal("--batch_size=33",
                "batch 33 does not divide into 4 micro-batches; give a multiple of 4 or "
                "--micro_batches=3");
  ExpectRefusal("--stages=0", "--stages=0: the network has 6 cells; give 1 to 6");
  ExpectRefusal("--stages=7", "--stages=7: the network has 6 cells; give 1 to 6");
  ExpectRefusal("--micro_batches=0", "--micro_batches=0 cannot be; give at least 1");
  ExpectRefusal("--batch_size=-32", "--batch_size=-32 cannot be; give at least 1");
  ExpectRefusal("--batch_size=4004", "--batch_size=4004 is more than the 4000 training digits");
  ExpectRefusal("--epochs=-1", "--epochs=-1 cannot be");
  ExpectRefusal("--steps=-2", "--steps=-2 cannot be");
  ExpectRefusal("--schedule=2f2b", "no schedule is named \"2f2b\"");
  ExpectRefusal("--optimizer=lamb", "--optimizer=lamb is unknown; choose one of sgd, adam");
  ExpectRefusal("--loss_reduction=max", "loss_reduction is 'max'; choose one of mean, sum");
  ExpectRefusal("--lr=nan", "lr is nan; give a finite one of at least 0");
  ExpectRefusal("--lr=fast", "Illegal value 'fast' specified for flag 'lr'");
  ExpectRefusal("--stage=2", "Unknown command line flag 'stage'");
  ExpectRefusal("stages=2", "'stages=2' is no flag; --help lists the flags");
  ExpectRefusal("--losses_out=no/such/folder", "nothing can be written to folder no/such/");
  ExpectRefusal("--weights_out=no/such/folder", "nothing can be written to folder no/such/");
}

// A copy of the digits in which one file has been changed, or removed where `change` gives no bytes.
std::string DamagedDigits(const std::string& name, const std::string& file,
                          const std::function<std::string(const std::string&)>& change) {
  std::string folder = Path(name);
  for (const char* sub : {"", "/train", "/test"}) mkdir((folder + sub).c_str(), 0777);
  for (const char* each : {"train/train-images-idx3-ubyte", "train/train-labels-idx1-ubyte",
                           "test/t10k-images-idx3-ubyte", "test/t10k-labels-idx1-ubyte"}) {
    std::string bytes = Contents(absl::StrCat(kDigits, "/", each));
    if (file == each) bytes = change(bytes);
    if (bytes.empty()) continue;
    EXPECT_TRUE(WriteFileAtomically(absl::StrCat(folder, "/", each), {bytes}).ok());
  }
  return folder;
}

TEST(MnistPipeline, RefusesMissingShortAndCorruptFiles) {
  const auto none = [](const std::string&) { return std::string(); };
  const auto half = [](const std::string& bytes) { return bytes.substr(0, bytes.size() / 2); };
  const auto corrupt = [](const std::string& bytes) { return "x" + bytes.substr(1); };
  const std::string missing = DamagedDigits("missing", "test/t10k-labels-idx1-ubyte", none);
  ExpectRefusal("--data_dir=" + missing, absl::StrCat("cannot open ", missing, "/test/t10k-labels-idx1-ubyte"));
  ExpectRefusal("--data_dir=no/such/folder", "cannot open no/such/folder/train/train-images-idx3-ubyte");
  const std::string cut = DamagedDigits("cut", "train/train-images-idx3-ubyte", half);
  ExpectRefusal("--data_dir=" + cut, "its header says [4000, 28, 28] elements of one byte, but 1567992 bytes follow");
  const std::string broken = DamagedDigits("broken", "train/train-labels-idx1-ubyte", corrupt);
  ExpectRefusal("--data_dir=" + broken, absl::StrCat(broken, "/train/train-labels-idx1-ubyte is damaged"));
}

TEST(MnistPipeline, ALabelOutOfRangeEndsTheStepOnAllStages) {
  const std::string wrong = DamagedDigits("wrong", "train/train-labels-idx1-ubyte", [](std::string bytes) {
    for (size_t i = 8; i < bytes.size(); ++i) bytes[i] = 77;
    return bytes;
  });
  for (int stages : {1, 3}) {
    const Result result = RunSample(absl::StrCat("--data_dir=", wrong, " --stages=", stages));
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr("77"));
    EXPECT_THAT(result.err, HasSubstr("_loss_fn"));
  }
}

TEST(MnistPipeline, ALossThatIsNotFiniteEndsTheRun) {
  for (int stages : {1, 2}) {
    const Result result = RunSample(absl::StrCat("--lr=1e30 --stages=", stages));
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr("the loss of step 1 is nan; no parameter was changed"));
  }
}

}  // namespace
}  // namespace pipeloom
