#include "plugin/cells/counter_random.h"

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipeloom {
namespace {

using ::testing::ElementsAre;

// The known answers that the authors of Philox publish with it (Random123, kat_vectors).
TEST(Philox4x32, GivesTheKnownAnswers) {
  EXPECT_THAT(Philox4x32({0, 0, 0, 0}, {0, 0}), ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(CounterRandom, SeedNameAndIndexEachChangeTheNumber) {
  std::set<double> numbers;
  for (uint64_t seed : {0ull, 1ull, 1ull << 32}) {
    for (const char* name : {"", "a", "b", "ab", "layer1.weight"}) {
      const CounterRandom random(seed, name);
      for (uint64_t index : {0ull, 1ull, 1ull << 32}) numbers.insert(random.Normal(index));
    }
  }
  EXPECT_EQ(numbers.size(), 3u * 5u * 3u);
}

TEST(CounterRandom, DrawsInAnyOrderAreTheSame) {
  const CounterRandom random(7, "weight");
  const double late = random.Uniform(1000);
  for (uint64_t i = 0; i < 1000; ++i) random.Uniform(i);
  EXPECT_EQ(random.Uniform(1000), late);
  EXPECT_EQ(CounterRandom(7, "weight").Uniform(1000), late);
}

TEST(CounterRandom, UniformHasMeanVarianceAndRange) {
  const CounterRandom random(3, "u");
  const int count = 100000;
  double sum = 0.0;
  double squares = 0.0;
  for (int i = 0; i < count; ++i) {
    const double u = random.Uniform(i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ASSERT_EQ(u, static_cast<double>(static_cast<float>(u)));
    sum += u;
    squares += u * u;
  }
  const double mean = sum / count;
  EXPECT_NEAR(mean, 0.5, 0.005);  // 5 standard errors
  EXPECT_NEAR(squares / count - mean * mean, 1.0 / 12, 0.003);
}

TEST(CounterRandom, NormalHasTheMomentsOfTheNormalDistribution) {
  const CounterRandom random(3, "n");
  const int count = 100000;
  double sum = 0.0;
  double squares = 0.0;
  double fourth = 0.0;
  for (int i = 0; i < count; ++i) {
    const double x = random.Normal(i);
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / count, 0.0, 0.016);
  EXPECT_NEAR(squares / count, 1.0, 0.025);
  EXPECT_NEAR(fourth / count, 3.0, 0.16);
}

TEST(CounterRandom, BelowReachesEveryNumberAboutEquallyOften) {
  const CounterRandom random(5, "b");
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) {
    const uint64_t drawn = random.Below(7, i);
    ASSERT_LT(drawn, 7u);
    ++counts[drawn];
  }
  for (int count : counts) EXPECT_NEAR(count, 10000, 480);
  EXPECT_EQ(random.Below(1, 12345), 0u);
}

}  // namespace
}  // namespace pipeloom
