#include "plugin/cells/initializer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "plugin/cells/cell_tree.h"
#include "plugin/cells/layers.h"

namespace pipeloom {
namespace {

std::vector<float> Fill(const Initializer& initializer, const Shape& shape, uint64_t seed = 1) {
  std::vector<float> values(static_cast<size_t>(NumElements(shape)), NAN);
  initializer(shape, CounterRandom(seed, "weight"), absl::MakeSpan(values));
  return values;
}

struct Moments {
  double mean = 0.0;
  double variance = 0.0;
  double largest = 0.0;  // of the absolute values
};

Moments MomentsOf(const std::vector<float>& values) {
  Moments moments;
  for (float value : values) {
    moments.mean += value / static_cast<double>(values.size());
    moments.largest = std::max(moments.largest, std::fabs(static_cast<double>(value)));
  }
  for (float value : values) {
    moments.variance += (value - moments.mean) * (value - moments.mean) / static_cast<double>(values.size());
  }
  return moments;
}

// Values of U(-bound, bound): variance bound^2 / 3, and among many a value near the bound.
void ExpectUniform(const std::vector<float>& values, double bound) {
  const Moments moments = MomentsOf(values);
  EXPECT_NEAR(moments.mean, 0.0, 0.02 * bound);
  EXPECT_NEAR(moments.variance, bound * bound / 3.0, 0.02 * bound * bound);
  EXPECT_LE(moments.largest, bound);
  EXPECT_GT(moments.largest, 0.99 * bound);
}

TEST(Initializers, HeUniformOfADenseWeight) {
  // sqrt(6 / (1 + 5) / 100) = 0.1; fan-in is the second extent.
  ExpectUniform(Fill(HeUniform(std::sqrt(5.0)), {300, 100}), 0.1);
  ExpectUniform(Fill(HeUniform(), {300, 100}), std::sqrt(6.0 / 100.0));
  ExpectUniform(Fill(HeUniform(), {60, 10, 5, 6}), std::sqrt(6.0 / 300.0));
}

TEST(Initializers, XavierUniform) {
  ExpectUniform(Fill(XavierUniform(), {200, 100}), std::sqrt(6.0 / 300.0));
  ExpectUniform(Fill(XavierUniform(2.0), {200, 100}), 2.0 * std::sqrt(6.0 / 300.0));
}

TEST(Initializers, UniformAndNormal) {
  ExpectUniform(Fill(Uniform(), {30000}), 0.07);
  const Moments moments = MomentsOf(Fill(Normal(0.5, 3.0), {30000}));
  EXPECT_NEAR(moments.mean, 3.0, 0.015);
  EXPECT_NEAR(moments.variance, 0.25, 0.01);
  EXPECT_NEAR(MomentsOf(Fill(Normal(), {30000})).variance, 1e-4, 5e-6);
}

TEST(Initializers, Constants) {
  EXPECT_EQ(Fill(Zeros(), {2, 3}), std::vector<float>(6, 0.0f));
  EXPECT_EQ(Fill(Ones(), {2, 3}), std::vector<float>(6, 1.0f));
}

std::vector<float> Values(Cell& root, const std::string& name) {
  const absl::StatusOr<CellTree> tree = CellTree::Of(root);
  EXPECT_TRUE(tree.ok()) << tree.status();
  const CellTree::NamedParameter* named = tree->FindParameter(name);
  if (named == nullptr) {
    ADD_FAILURE() << "no parameter " << name;
    return {};
  }
  const Tensor value = named->parameter->InitialValue(name);
  return std::vector<float>(value.data<float>(), value.data<float>() + value.type().num_elements());
}

TEST(InitialValues, OfADenseAreThoseOfMindSpore) {
  Dense dense(400, 300);
  ExpectUniform(Values(dense, "weight"), 0.05);  // HeUniform(sqrt 5): 1 / sqrt(400)
  const Moments bias = MomentsOf(Values(dense, "bias"));
  EXPECT_LE(bias.largest, 0.05);
  EXPECT_GT(bias.largest, 0.045);
}

class Named : public Cell {
 public:
  // Two equal layers, made and added in either order.
  explicit Named(bool first_first) {
    if (first_first) AddCell<Dense>("first", 5, 4);
    AddCell<Dense>("second", 5, 4);
    if (!first_first) AddCell<Dense>("first", 5, 4);
  }
};

TEST(InitialValues, DependOnSeedAndNameOnly) {
  Named one(true);
  Named other(false);
  EXPECT_EQ(Values(one, "first.weight"), Values(other, "first.weight"));
  EXPECT_EQ(Values(one, "second.bias"), Values(other, "second.bias"));
  EXPECT_NE(Values(one, "first.weight"), Values(one, "second.weight"));

  const std::vector<float> with_seed_0 = Values(one, "first.weight");
  one.SetSeed(1);
  EXPECT_NE(Values(one, "first.weight"), with_seed_0);
  other.SetSeed(1);
  EXPECT_EQ(Values(one, "first.weight"), Values(other, "first.weight"));
}

// Pins the numbers: a checkpoint that was made from a seed can be made again by any later version.
TEST(InitialValues, NeverChange) {
  std::vector<float> expected;
  for (uint64_t i = 0; i < 3; ++i) {
    uint64_t hash = 0xCBF29CE484222325;
    for (char c : std::string("weight")) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
    const uint32_t word = Philox4x32(
        {static_cast<uint32_t>(i), 0, static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32)}, {9, 0})[0];
    expected.push_back(static_cast<float>(0.25 * (2.0 * ((word >> 8) / 16777216.0) - 1.0)));
  }
  EXPECT_EQ(Fill(Uniform(0.25), {3}, /*seed=*/9), expected);
}

}  // namespace
}  // namespace pipeloom
