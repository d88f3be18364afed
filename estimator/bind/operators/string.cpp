// Operators on text; no element has a size on a GPU.
#include <algorithm>

#include "estimator/bind/operators/families.h"

namespace headroom {
namespace {

void concat(const NodeShaper& op) { op.set(0, DType::string, op.broadcast_inputs({0, 1})); }

/// Stop words may be dropped: the input's shape is the most there can be.
void normalize(const NodeShaper& op) {
  op.same_shape(0, 0);
  const Attribute* words = op.node().attribute("stopwords");
  if (words && !words->texts.empty()) op.bounded("how many words are dropped depends on data");
}

void match(const NodeShaper& op) { op.set(0, DType::b8, op.dims(0)); }

void split(const NodeShaper& op) {
  const std::int64_t most = op.node().integer("maxsplit", -1);
  if (most < 0) op.fail("the number of pieces depends on data that only a run knows", "give the node maxsplit");
  Dims result = op.dims(0);
  result.push_back(checked_add(most, 1));
  op.set(0, DType::string, std::move(result));
  op.set(1, DType::i64, op.dims(0));
  op.bounded("the number of pieces depends on data");
}

/// [C] or [N, C] -> the same with max(ngram_indexes) + 1 in place of C.
void tf_idf(const NodeShaper& op) {
  const auto indexes = op.node().integers("ngram_indexes");
  op.require(!indexes.empty(), "there are no ngram_indexes");
  Dims result = op.dims(0);
  op.require(result.size() == 1 || result.size() == 2, "the input must have 1 or 2 dimensions");
  result.back() = checked_add(*std::max_element(indexes.begin(), indexes.end()), 1);
  op.set(0, DType::f32, std::move(result));
}

constexpr OperatorRule rules[] = {{"StringConcat", concat},
                                  {"StringNormalizer", normalize},
                                  {"RegexFullMatch", match},
                                  {"StringSplit", split},
                                  {"TfIdfVectorizer", tf_idf}};

}  // namespace

std::span<const OperatorRule> string_rules() { return rules; }

}  // namespace headroom
