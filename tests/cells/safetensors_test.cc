#include "plugin/cells/safetensors.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/file_io.h"

namespace pipeloom {
namespace {

using ::testing::HasSubstr;

Tensor Floats(Shape shape, const std::vector<float>& values) {
  Tensor tensor(TensorType{DType::kFloat32, std::move(shape)});
  std::copy(values.begin(), values.end(), tensor.data<float>());
  return tensor;
}

std::string Path(const std::string& name) { return testing::TempDir() + "/" + name; }

// A file of this header and data.
std::string File(const std::string& header, const std::string& data) {
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
  return length + header + data;
}

std::string Refusal(const std::string& bytes) { return std::string(ParseSafetensors(bytes).status().message()); }

// Bytes that follow from the format's description, written by hand.
TEST(Safetensors, WritesTheFormat) {
  TensorMap tensors;
  tensors.emplace("b", Floats({2}, {1.0f, -2.0f}));
  Tensor labels(TensorType{DType::kInt32, {1, 1}});
  labels.data<int32_t>()[0] = 258;
  tensors.emplace("a", std::move(labels));
  ASSERT_TRUE(WriteSafetensors(Path("written"), tensors).ok());
  const absl::StatusOr<std::string> bytes = ReadFile(Path("written"));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  std::string header =
      R"({"a":{"data_offsets":[0,4],"dtype":"I32","shape":[1,1]},"b":{"data_offsets":[4,12],"dtype":"F32","shape":[2]}})";
  header.append((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(*bytes, File(header, std::string("\x02\x01\0\0\0\0\x80\x3f\0\0\0\xc0", 12)));
  EXPECT_FALSE(ReadFile(Path("written.partial")).ok());
}

TEST(Safetensors, ReadsWhatItWrote) {
  TensorMap tensors;
  tensors.emplace("layer.weight", Floats({2, 3}, {1, 2, 3, 4, 5, 6}));
  tensors.emplace("scalar", Floats({}, {0.5f}));
  tensors.emplace("empty", Floats({0, 4}, {}));
  ASSERT_TRUE(WriteSafetensors(Path("round_trip"), tensors).ok());
  const absl::StatusOr<TensorMap> read = ReadSafetensors(Path("round_trip"));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 3u);
  for (const auto& [name, tensor] : tensors) {
    ASSERT_EQ(read->at(name).type(), tensor.type()) << name;
    EXPECT_TRUE(std::equal(tensor.data<float>(), tensor.data<float>() + tensor.type().num_elements(),
                           read->at(name).data<float>()))
        << name;
  }
  // A second writing replaces the file, and gives the same bytes.
  const std::string before = *ReadFile(Path("round_trip"));
  ASSERT_TRUE(WriteSafetensors(Path("round_trip"), *read).ok());
  EXPECT_EQ(*ReadFile(Path("round_trip")), before);
}

TEST(Safetensors, ReadsFilesOfOthers) {
  // With metadata, keys in another order, places in another order than names, and no filling.
  const std::string header = R"({"__metadata__":{"format":"pt"},"z":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                             R"("a":{"dtype":"I32","shape":[],"data_offsets":[4,8]}})";
  const absl::StatusOr<TensorMap> read = ParseSafetensors(File(header, std::string("\0\0\x80\x3f\7\0\0\0", 8)));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ(read->at("z").data<float>()[0], 1.0f);
  EXPECT_EQ(read->at("a").data<int32_t>()[0], 7);
}

TEST(Safetensors, MetadataIsReadAsItWasWritten) {
  const Metadata written = {{"format", "\"pt\""}, {"steps", "17"}};
  TensorMap tensors;
  tensors.emplace("a", Floats({1}, {1.0f}));
  ASSERT_TRUE(WriteSafetensors(Path("metadata"), tensors, written).ok());
  Metadata read;
  EXPECT_TRUE(ParseSafetensors(*ReadFile(Path("metadata")), &read).ok());
  EXPECT_EQ(read, written);
  EXPECT_THAT(Refusal(File(R"({"__metadata__":7})", "")), HasSubstr("its '__metadata__' is no object"));
  EXPECT_THAT(Refusal(File(R"({"__metadata__":{"steps":17}})", "")),
              HasSubstr("'steps' in its '__metadata__' is no text"));
}

TEST(Safetensors, RefusesFilesThatAreCutShort) {
  const std::string whole = File(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", std::string(8, 'x'));
  ASSERT_TRUE(ParseSafetensors(whole).ok());
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(ParseSafetensors(whole.substr(0, bytes)).ok()) << bytes << " bytes";
  }
  EXPECT_THAT(Refusal(whole.substr(0, 5)), HasSubstr("it has 5 bytes, and 8 are needed for the length of the header"));
  EXPECT_THAT(Refusal(whole.substr(0, 20)), HasSubstr("the header should have 54 bytes, but only 12 follow"));
  EXPECT_THAT(Refusal(whole.substr(0, whole.size() - 1)),
              HasSubstr("tensor 'a' has data_offsets [0, 8], but the file has 7 bytes of data"));
  EXPECT_THAT(Refusal(whole + "x"), HasSubstr("bytes 8 to 9 of the data belong to no tensor"));
  EXPECT_THAT(Refusal(std::string(8, '\xff')), HasSubstr("the header should have 18446744073709551615 bytes"));
}

TEST(Safetensors, RefusesHeadersOfAnotherForm) {
  EXPECT_THAT(Refusal(File("{", "")), HasSubstr("the header is no JSON"));
  EXPECT_THAT(Refusal(File("[]", "")), HasSubstr("the header is JSON, but no object"));
  EXPECT_THAT(Refusal(File(R"({"a":1})", "")), HasSubstr("tensor 'a' is no object"));
  EXPECT_THAT(Refusal(File(R"({"a":{}})", "")), HasSubstr("tensor 'a' has no 'dtype'"));
  EXPECT_THAT(Refusal(File(R"({"a":{"dtype":"F16","shape":[],"data_offsets":[0,2]}})", "xx")),
              HasSubstr("tensor 'a' has element type 'F16'; it can be one of F32, I32"));
  EXPECT_THAT(Refusal(File(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", "xxxx")),
              HasSubstr("tensor 'a' has no list 'shape'"));
  EXPECT_THAT(Refusal(File(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "xxxx")),
              HasSubstr("tensor 'a': 'shape' has -1, which is no length"));
  EXPECT_THAT(Refusal(File(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", "xxxx")),
              HasSubstr("'shape' has 1.5, which is no length"));
  EXPECT_THAT(Refusal(File(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4,8]}})", "xxxx")),
              HasSubstr("tensor 'a' has 3 data_offsets, not 2"));
  const std::string entry = R"({"dtype":"F32","shape":[],"data_offsets":[0,4]})";
  EXPECT_THAT(Refusal(File(absl::StrCat(R"({"a":)", entry, R"(,"b":{"a":1},"a":)", entry, "}"), "xxxx")),
              HasSubstr("tensor 'a' stands in the header twice"));
}

// By the thousand such brackets would end the process, where the library goes through them by recursion.
TEST(Safetensors, RefusesBracketsInBrackets) {
  for (const size_t depth : {2, 200000}) {
    const std::string list = std::string(depth, '[') + "1" + std::string(depth, ']');
    for (const std::string& header :
         {R"({"a":{"dtype":"F32","shape":)" + list + R"(,"data_offsets":[0,4]}})",
          R"({"__metadata__":{"a":{"b":)" + list + "}}}", R"({"a":{"dtype":)" + list + "}}"}) {
      EXPECT_THAT(Refusal(File(header, "1234")), HasSubstr("the header has lists or objects in the lists of a tensor"));
    }
  }
}

TEST(Safetensors, RefusesDataThatDoesNotFit) {
  const auto two = [](const std::string& a, const std::string& b) {
    return File(absl::StrCat(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":)", a,
                             R"(},"b":{"dtype":"F32","shape":[1],"data_offsets":)", b, "}}"),
                std::string(12, 'x'));
  };
  EXPECT_THAT(Refusal(two("[0,4]", "[2,6]")), HasSubstr("tensors 'a' and 'b' overlap at byte 2 of the data"));
  EXPECT_THAT(Refusal(two("[0,4]", "[8,12]")), HasSubstr("bytes 4 to 8 of the data, before tensor 'b', belong to no"));
  EXPECT_THAT(Refusal(two("[4,0]", "[4,8]")), HasSubstr("tensor 'a' has data_offsets [4, 0]"));
  EXPECT_THAT(Refusal(two("[0,8]", "[8,12]")),
              HasSubstr("tensor 'a' has shape [1] of F32, which does not fit its 8 bytes of data"));
  // 2^62 times 4 bytes is 0 in 64 bits.
  EXPECT_THAT(Refusal(File(R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})", "")),
              HasSubstr("which does not fit its 0 bytes"));
}

TEST(Safetensors, NamesThePathInErrors) {
  EXPECT_THAT(std::string(ReadSafetensors(Path("missing")).status().message()), HasSubstr(Path("missing")));
  const std::string garbage = "garbage";
  ASSERT_TRUE(WriteFileAtomically(Path("garbage"), {garbage}).ok());
  EXPECT_THAT(std::string(ReadSafetensors(Path("garbage")).status().message()), HasSubstr(Path("garbage")));
  EXPECT_THAT(std::string(WriteSafetensors(Path("no/such/folder"), {}).message()), HasSubstr("no/such/folder"));
  TensorMap not_utf8;
  not_utf8.emplace("\xff", Floats({}, {0.0f}));
  EXPECT_THAT(std::string(WriteSafetensors(Path("utf8"), not_utf8).message()), HasSubstr("name cannot be written"));
}

}  // namespace
}  // namespace pipeloom
