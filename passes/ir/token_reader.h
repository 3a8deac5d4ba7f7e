#ifndef PASSES_IR_TOKEN_READER_H_
#define PASSES_IR_TOKEN_READER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/base/attributes.h"
#include "kernels/base/tensor_type.h"
#include "passes/ir/lexer.h"

namespace pipeloom {

// Reads tokens in order, and the small parts of the text form that stand in many places. All errors are InvalidArgument
// with the place; Peek beyond the last token gives kEnd.
class TokenReader {
 public:
  explicit TokenReader(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& Peek(size_t ahead = 0) const;
  const Token& Next();
  bool PeekIs(absl::string_view punctuation, size_t ahead = 0) const;
  bool PeekIsWord(absl::string_view word) const;
  bool Accept(absl::string_view punctuation);
  bool AcceptWord(absl::string_view word);

  absl::Status Expect(absl::string_view punctuation);
  absl::Status ExpectWord(absl::string_view word);
  // A token of `kind`, described by `what` where there is another one.
  absl::StatusOr<Token> ExpectKind(Token::Kind kind, absl::string_view what);
  // A word, or a string that stands for one.
  absl::StatusOr<std::string> ExpectName(absl::string_view what);
  absl::StatusOr<int64_t> ExpectInt64();
  absl::StatusOr<int> ExpectInt();  // between -2^31 and 2^31 - 1
  absl::StatusOr<double> ExpectDouble();
  // f32[8,784]; at most 2^60 elements, extents of 0 counted as 1, so that nobody's product overflows.
  absl::StatusOr<TensorType> ExpectType();
  // {axis=0, transpose_a}, or nothing: an empty map.
  absl::StatusOr<AttributeMap> OptionalAttributes();

 private:
  absl::StatusOr<Attribute> ExpectAttribute();

  std::vector<Token> tokens_;
  size_t position_ = 0;
};

}  // namespace pipeloom

#endif  // PASSES_IR_TOKEN_READER_H_
