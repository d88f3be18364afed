// A line of Python with several statements: which of them each of its calls belongs to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom::recovery {

/// "a = f(x); b = g(a)" in parts, without the semicolons within brackets.
std::vector<std::string_view> statements_of(std::string_view line);

/// Follows the calls of a line in their order. A call belongs to the statement in hand as long as that still has its
/// name, or its operator's sign, left; else to the next one that has it, or, when the line runs again, to the first.
class LineFollower {
 public:
  explicit LineFollower(std::string_view line) : statements_(statements_of(line)), used_(statements_.size()) {}
  bool has_several() const { return statements_.size() > 1; }
  std::string_view statement() const { return statements_[at_]; }
  /// Whether the statement in hand has "[f(x) for x in y]": its calls come again within it.
  bool comprehends() const;
  /// Another number whenever another statement begins, or the same one again.
  std::size_t number() const { return turn_ * statements_.size() + at_; }
  /// A call of the module, function or operator ("aten::add.Tensor") of this name. `continues`: it reads what the call
  /// before made, so that both may come from one bracket, x[:, 0, 2:].
  void follow(std::string_view name, bool continues = false);

 private:
  std::vector<std::string_view> statements_;
  std::size_t at_ = 0, turn_ = 0;
  std::vector<std::vector<std::string>> used_;  ///< by statement: words of it that calls have taken
};

}  // namespace headroom::recovery
