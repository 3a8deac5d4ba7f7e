#include <sys/stat.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/file_io.h"
#include "plugin/cells/batches.h"
#include "plugin/cells/idx_dataset.h"

namespace pipeloom {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string BigEndian(uint32_t number) {
  return {static_cast<char>(number >> 24), static_cast<char>(number >> 16), static_cast<char>(number >> 8),
          static_cast<char>(number)};
}

std::string Idx(const std::vector<uint32_t>& extents, const std::string& elements) {
  std::string bytes = BigEndian(0x0800 + static_cast<uint32_t>(extents.size()));
  for (uint32_t extent : extents) bytes += BigEndian(extent);
  return bytes + elements;
}

// A folder with these two files; a file of no bytes at all is left out.
std::string Folder(const std::string& name, const std::string& images, const std::string& labels) {
  std::string folder = testing::TempDir() + "/" + name;
  mkdir(folder.c_str(), 0777);
  if (!images.empty()) {
    EXPECT_TRUE(WriteFileAtomically(folder + "/train-images-idx3-ubyte", {images}).ok());
  }
  if (!labels.empty()) {
    EXPECT_TRUE(WriteFileAtomically(folder + "/train-labels-idx1-ubyte", {labels}).ok());
  }
  return folder;
}

std::string Refusal(const std::string& folder) { return std::string(LoadMnist(folder, "train").status().message()); }

const std::string kImages = Idx({3, 1, 2}, std::string("\0\xff\1\2\3\4", 6));
const std::string kLabels = Idx({3}, "\7\1\2");

TEST(Idx, ReadsShapeAndElements) {
  const absl::StatusOr<MnistDataset> dataset = LoadMnist(Folder("whole", kImages, kLabels), "train");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(dataset->size(), 3);
  EXPECT_EQ(dataset->rows(), 1);
  EXPECT_EQ(dataset->columns(), 2);
  EXPECT_EQ(dataset->images.elements, std::string("\0\xff\1\2\3\4", 6));
  EXPECT_EQ(dataset->labels.elements, "\7\1\2");
}

TEST(Idx, RefusesEveryCutAndAnyLongerFile) {
  for (size_t bytes = 0; bytes < kImages.size(); ++bytes) EXPECT_FALSE(ParseIdx(kImages.substr(0, bytes), 3).ok());
  EXPECT_TRUE(ParseIdx(kImages, 3).ok());
  EXPECT_FALSE(ParseIdx(kImages + "x", 3).ok());
}

TEST(Idx, SaysWhatIsWrong) {
  EXPECT_THAT(Refusal(Folder("short", kImages.substr(0, 18), kLabels)),
              AllOf(HasSubstr("short/train-images-idx3-ubyte is damaged"),
                    HasSubstr("its header says [3, 1, 2] elements of one byte, but 2 bytes follow")));
  EXPECT_THAT(Refusal(Folder("swapped", kLabels, kImages)),
              HasSubstr("it has 11 bytes, and the header alone of an IDX file with 3 axes has 16"));
  EXPECT_THAT(Refusal(Folder("magic", kImages, std::string("\x1f\x8b\x08\0", 4) + kLabels.substr(4))),
              AllOf(HasSubstr("train-labels-idx1-ubyte"), HasSubstr("begins with the bytes 31 139 8 0; an IDX file of "
                                                                    "unsigned bytes with 1 axes begins with 0 0 8 1")));
  EXPECT_THAT(Refusal(Folder("huge", Idx({0xffffffff, 0xffffffff, 0xffffffff}, ""), kLabels)),
              HasSubstr("[4294967295, 4294967295, 4294967295] elements of one byte, but 0 bytes follow"));
  EXPECT_THAT(Refusal(Folder("count", kImages, Idx({2}, "\7\1"))),
              AllOf(HasSubstr("has 3 images"), HasSubstr("has 2 labels; take both files from one data set")));
  EXPECT_THAT(Refusal(Folder("empty", Idx({0, 1, 2}, ""), Idx({0}, ""))), HasSubstr("has no images"));
}

TEST(Idx, NamesAMissingFileAndWhatToDo) {
  const std::string folder = Folder("missing", kImages, "");
  EXPECT_THAT(Refusal(folder),
              AllOf(HasSubstr(folder + "/train-labels-idx1-ubyte"),
                    HasSubstr("a data file is missing; put it there, uncompressed, or give the folder")));
  EXPECT_EQ(LoadMnist(folder, "train").status().code(), absl::StatusCode::kNotFound);
}

TEST(Batches, AnOrderHasEveryNumberOnce) {
  for (int64_t size : {0, 1, 2, 1000}) {
    std::vector<int64_t> order = ShuffledOrder(size, /*seed=*/1, /*epoch=*/0);
    std::sort(order.begin(), order.end());
    std::vector<int64_t> all(static_cast<size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(order, all);
  }
}

TEST(Batches, AnOrderDependsOnSeedAndEpoch) {
  EXPECT_EQ(ShuffledOrder(1000, 1, 2), ShuffledOrder(1000, 1, 2));
  EXPECT_NE(ShuffledOrder(1000, 1, 2), ShuffledOrder(1000, 1, 3));
  EXPECT_NE(ShuffledOrder(1000, 1, 2), ShuffledOrder(1000, 2, 2));
}

TEST(Batches, EveryOrderIsAboutEquallyLikely) {
  std::vector<int> counts(6);
  for (int epoch = 0; epoch < 6000; ++epoch) {
    const std::vector<int64_t> order = ShuffledOrder(3, 0, epoch);
    ++counts[static_cast<size_t>(order[0] * 2 + (order[1] > order[2]))];
  }
  for (int count : counts) EXPECT_NEAR(count, 1000, 150);  // 5 standard deviations
}

TEST(Batches, NormalisesPixelsAndFillsUpAShortBatch) {
  const absl::StatusOr<MnistDataset> dataset = LoadMnist(Folder("batches", kImages, kLabels), "train");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  MnistBatch batch(*dataset, 2);
  EXPECT_EQ(batch.images.type().ToString(), "f32[2,1,1,2]");
  FillBatch(*dataset, {2, 0, 1}, 0, batch);
  EXPECT_EQ(batch.valid, 2);
  const std::vector<double> pixels = {3, 4, 0, 255};
  for (size_t i = 0; i < pixels.size(); ++i) {
    EXPECT_NEAR(batch.images.data<float>()[i], (pixels[i] / 255 - 0.1307) / 0.3081, 1e-6) << i;
  }
  EXPECT_EQ(batch.labels.data<int32_t>()[0], 2);
  EXPECT_EQ(batch.labels.data<int32_t>()[1], 7);

  FillBatch(*dataset, {2, 0, 1}, 2, batch);
  EXPECT_EQ(batch.valid, 1);
  EXPECT_NEAR(batch.images.data<float>()[0], (1.0 / 255 - 0.1307) / 0.3081, 1e-6);
  EXPECT_EQ(batch.images.data<float>()[2], 0.0f);
  EXPECT_EQ(batch.images.data<float>()[3], 0.0f);
  EXPECT_EQ(batch.labels.data<int32_t>()[0], 1);
  EXPECT_EQ(batch.labels.data<int32_t>()[1], 0);
}

}  // namespace
}  // namespace pipeloom
