#include "kernels/base/nearest_names.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipeloom {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NearestFirst, OrdersByEdits) {
  // kitten to sitting takes 3 edits, to mitten 1, to kit 3, to "" 6.
  EXPECT_THAT(NearestFirst("kitten", {"", "sitting", "mitten", "kit"}), ElementsAre("mitten", "sitting", "kit", ""));
}

TEST(NearestFirst, InsertionAndRemovalCountAsOne) {
  EXPECT_THAT(NearestFirst("layer1", {"layer", "xlayer1y", "layer12"}), ElementsAre("layer", "layer12", "xlayer1y"));
}

TEST(NearestFirst, EqualDistancesKeepTheirOrder) {
  EXPECT_THAT(NearestFirst("a", {"c", "b", "a"}), ElementsAre("a", "c", "b"));
}

TEST(NearestFirst, NoChoices) { EXPECT_THAT(NearestFirst("a", {}), IsEmpty()); }

}  // namespace
}  // namespace pipeloom
