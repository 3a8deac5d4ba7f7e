#include "passes/ir/token_reader.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/op_rules.h"

namespace pipeloom {
namespace {

// A word that reads as a floating-point number and not as an integer.
bool LooksLikeDouble(absl::string_view word) { return word.find_first_of(".en") != absl::string_view::npos; }

}  // namespace

const Token& TokenReader::Peek(size_t ahead) const { return tokens_[std::min(position_ + ahead, tokens_.size() - 1)]; }

const Token& TokenReader::Next() {
  const Token& token = Peek();
  if (token.kind != Token::Kind::kEnd) ++position_;
  return token;
}

bool TokenReader::PeekIs(absl::string_view punctuation, size_t ahead) const {
  const Token& token = Peek(ahead);
  return token.kind == Token::Kind::kPunctuation && token.text == punctuation;
}

bool TokenReader::PeekIsWord(absl::string_view word) const {
  return Peek().kind == Token::Kind::kWord && Peek().text == word;
}

bool TokenReader::Accept(absl::string_view punctuation) {
  if (!PeekIs(punctuation)) return false;
  Next();
  return true;
}

bool TokenReader::AcceptWord(absl::string_view word) {
  if (!PeekIsWord(word)) return false;
  Next();
  return true;
}

absl::Status TokenReader::Expect(absl::string_view punctuation) {
  if (Accept(punctuation)) return absl::OkStatus();
  return ErrorAt(Peek(), absl::StrCat("expected '", punctuation, "'"));
}

absl::Status TokenReader::ExpectWord(absl::string_view word) {
  if (AcceptWord(word)) return absl::OkStatus();
  return ErrorAt(Peek(), absl::StrCat("expected '", word, "'"));
}

absl::StatusOr<Token> TokenReader::ExpectKind(Token::Kind kind, absl::string_view what) {
  if (Peek().kind != kind) return ErrorAt(Peek(), absl::StrCat("expected ", what));
  return Next();
}

absl::StatusOr<std::string> TokenReader::ExpectName(absl::string_view what) {
  const Token& token = Peek();
  if (token.kind != Token::Kind::kWord && (token.kind != Token::Kind::kString || token.text.empty())) {
    return ErrorAt(token, absl::StrCat("expected ", what));
  }
  return Next().text;
}

absl::StatusOr<int64_t> TokenReader::ExpectInt64() {
  int64_t value = 0;
  if (Peek().kind != Token::Kind::kWord || !absl::SimpleAtoi(Peek().text, &value)) {
    return ErrorAt(Peek(), "expected an integer between -2^63 and 2^63 - 1");
  }
  Next();
  return value;
}

absl::StatusOr<int> TokenReader::ExpectInt() {
  int value = 0;
  if (Peek().kind != Token::Kind::kWord || !absl::SimpleAtoi(Peek().text, &value)) {
    return ErrorAt(Peek(), "expected an integer between -2^31 and 2^31 - 1");
  }
  Next();
  return value;
}

absl::StatusOr<double> TokenReader::ExpectDouble() {
  const std::string& word = Peek().text;
  double value = 0;
  const auto result = std::from_chars(word.data(), word.data() + word.size(), value);
  if (Peek().kind != Token::Kind::kWord || result.ec != std::errc() || result.ptr != word.data() + word.size()) {
    return ErrorAt(Peek(), "expected a number that fits a double");
  }
  Next();
  return value;
}

absl::StatusOr<TensorType> TokenReader::ExpectType() {
  ASSIGN_OR_RETURN(const Token name, ExpectKind(Token::Kind::kWord, "a type such as f32[8,784]"));
  const absl::StatusOr<DType> dtype = ParseDType(name.text);
  if (!dtype.ok()) return ErrorAt(name, dtype.status().message());
  TensorType type{*dtype, {}};
  RETURN_IF_ERROR(Expect("["));
  while (!PeekIs("]")) {
    if (!type.shape.empty()) RETURN_IF_ERROR(Expect(","));
    const Token& at = Peek();
    ASSIGN_OR_RETURN(const int64_t extent, ExpectInt64());
    if (extent < 0) return ErrorAt(at, "an extent is 0 or more");
    type.shape.push_back(extent);
    if (!op_rules::HasSaneExtents(type.shape)) return ErrorAt(at, "a tensor has at most 2^60 elements");
  }
  RETURN_IF_ERROR(Expect("]"));
  return type;
}

absl::StatusOr<AttributeMap> TokenReader::OptionalAttributes() {
  AttributeMap attributes;
  if (!Accept("{")) return attributes;
  do {
    ASSIGN_OR_RETURN(const Token name, ExpectKind(Token::Kind::kWord, "the name of an attribute"));
    Attribute value = true;
    if (Accept("=")) {
      ASSIGN_OR_RETURN(value, ExpectAttribute());
    }
    if (!attributes.emplace(name.text, std::move(value)).second) return ErrorAt(name, "this attribute is given twice");
  } while (Accept(","));
  RETURN_IF_ERROR(Expect("}"));
  return attributes;
}

absl::StatusOr<Attribute> TokenReader::ExpectAttribute() {
  if (Peek().kind == Token::Kind::kString) return Attribute(Next().text);
  if (AcceptWord("true")) return Attribute(true);
  if (AcceptWord("false")) return Attribute(false);
  if (Accept("[")) {
    std::vector<int64_t> values;
    while (!PeekIs("]")) {
      if (!values.empty()) RETURN_IF_ERROR(Expect(","));
      ASSIGN_OR_RETURN(const int64_t value, ExpectInt64());
      values.push_back(value);
    }
    RETURN_IF_ERROR(Expect("]"));
    return Attribute(std::move(values));
  }
  if (Peek().kind != Token::Kind::kWord) {
    return ErrorAt(Peek(), "expected true, false, a number, a string or a list of integers");
  }
  if (LooksLikeDouble(Peek().text)) {
    ASSIGN_OR_RETURN(const double value, ExpectDouble());
    return Attribute(value);
  }
  ASSIGN_OR_RETURN(const int64_t value, ExpectInt64());
  return Attribute(value);
}

}  // namespace pipeloom
