#ifndef PASSES_IR_LEXER_H_
#define PASSES_IR_LEXER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipeloom {

// One piece of the text form.
struct Token {
  enum class Kind {
    kWord,         // matmul, 1f1b, layer1.weight, -2.5e-3: names and numbers, told apart by the parser
    kString,       // "layer1.weight"
    kValue,        // %a or %"a name"
    kGraph,        // @step
    kPunctuation,  // ( ) { } [ ] , : = -> //
    kEnd,
  };
  Kind kind = Kind::kEnd;
  std::string text;          // without quotes, escapes, '%' and '@'
  absl::string_view source;  // as written; borrowed from the text
  int line = 1;              // from 1
  int column = 1;            // in bytes, from 1
};

// InvalidArgument "line L, column C: '<source>': <what>", the source shortened and escaped.
absl::Status ErrorAt(const Token& token, absl::string_view what);

// All tokens of `text`, kEnd last; `text` must outlive them. InvalidArgument on a character or a string that cannot be
// one.
absl::StatusOr<std::vector<Token>> Lex(absl::string_view text);

}  // namespace pipeloom

#endif  // PASSES_IR_LEXER_H_
