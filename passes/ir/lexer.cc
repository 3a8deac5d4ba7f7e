#include "passes/ir/lexer.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

constexpr absl::string_view kPunctuation[] = {"->", "//", "(", ")", "{", "}", "[", "]", ",", ":", "="};

class Lexer {
 public:
  explicit Lexer(absl::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<Token>> Run() {
    std::vector<Token> tokens;
    do {
      SkipBlanks();
      ASSIGN_OR_RETURN(Token token, Next());
      tokens.push_back(std::move(token));
    } while (tokens.back().kind != Token::Kind::kEnd);
    return tokens;
  }

 private:
  char At(size_t position) const { return position < text_.size() ? text_[position] : '\0'; }

  void SkipBlanks() {
    for (; position_ < text_.size(); ++position_) {
      if (text_[position_] == '\n') {
        ++line_;
        line_start_ = position_ + 1;
        only_blanks_in_line_ = true;
      } else if (text_[position_] == '#' && only_blanks_in_line_) {
        while (position_ + 1 < text_.size() && text_[position_ + 1] != '\n') ++position_;
      } else if (!absl::ascii_isspace(static_cast<unsigned char>(text_[position_]))) {
        return;
      }
    }
  }

  absl::StatusOr<Token> Next() {
    only_blanks_in_line_ = false;
    Token token;
    token.line = line_;
    token.column = static_cast<int>(position_ - line_start_) + 1;
    if (position_ == text_.size()) return token;
    const char first = text_[position_];
    if (first == '"') return Finish(std::move(token), Token::Kind::kString, 0);
    if (first == '%') return Finish(std::move(token), Token::Kind::kValue, 1);
    if (first == '@') return Finish(std::move(token), Token::Kind::kGraph, 1);
    for (absl::string_view mark : kPunctuation) {
      if (absl::StartsWith(text_.substr(position_), mark)) {
        token.kind = Token::Kind::kPunctuation;
        token.text = std::string(mark);
        token.source = text_.substr(position_, mark.size());
        position_ += mark.size();
        return token;
      }
    }
    return Finish(std::move(token), Token::Kind::kWord, 0);
  }

  // Reads the word or the string that follows `prefix` characters.
  absl::StatusOr<Token> Finish(Token token, Token::Kind kind, size_t prefix) {
    token.kind = kind;
    const size_t begin = position_ + prefix;
    const bool quoted = At(begin) == '"';
    const size_t end = quoted ? EndOfString(begin) : EndOfWord(begin);
    token.source = text_.substr(position_, end - position_);
    if (quoted) {
      if (At(end) != '"') return ErrorAt(token, "expected '\"' before the end of the line");
      token.source = text_.substr(position_, end + 1 - position_);
      std::string error;
      if (!absl::CUnescape(text_.substr(begin + 1, end - begin - 1), &token.text, &error)) {
        return ErrorAt(token, absl::StrCat("this string has an escape that C does not know: ", error));
      }
    } else {
      token.text = std::string(text_.substr(begin, end - begin));
    }
    if (token.text.empty() && kind != Token::Kind::kString) {
      if (!quoted) token.source = text_.substr(position_, prefix + 1);
      return ErrorAt(token, prefix > 0 ? "expected a name after this sign" : "no part of the text form begins so");
    }
    position_ = quoted ? end + 1 : end;
    return token;
  }

  // Where the closing quote stands, or the end of the line or text where there is none.
  size_t EndOfString(size_t begin) const {
    size_t end = begin + 1;
    while (end < text_.size() && text_[end] != '\n' && text_[end] != '"') {
      end += text_[end] == '\\' && end + 1 < text_.size() && text_[end + 1] != '\n' ? 2 : 1;
    }
    return end;
  }

  size_t EndOfWord(size_t begin) const {
    size_t end = begin;
    for (; end < text_.size(); ++end) {
      const char c = text_[end];
      if (c == '-' && At(end + 1) == '>') break;
      if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && !absl::StrContains("_.+-", c)) break;
    }
    return end;
  }

  absl::string_view text_;
  size_t position_ = 0;
  int line_ = 1;
  size_t line_start_ = 0;
  bool only_blanks_in_line_ = true;
};

}  // namespace

absl::Status ErrorAt(const Token& token, absl::string_view what) {
  constexpr size_t kShown = 40;
  std::string shown = "end of text";
  if (token.kind != Token::Kind::kEnd) {
    shown = absl::StrCat("'", absl::CHexEscape(token.source.substr(0, kShown)),
                         token.source.size() > kShown ? "..." : "", "'");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("line ", token.line, ", column ", token.column, ": ", shown, ": ", what));
}

absl::StatusOr<std::vector<Token>> Lex(absl::string_view text) { return Lexer(text).Run(); }

}  // namespace pipeloom
