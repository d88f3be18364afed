// The ai.onnx.ml domain: classical models. They have shapes; on a GPU they have no program.
#include <algorithm>

#include "estimator/bind/operators/families.h"

namespace headroom {
namespace {

std::int64_t length_of(const NodeShaper& op, std::string_view integers, std::string_view texts) {
  const Attribute *a = op.node().attribute(integers), *b = op.node().attribute(texts);
  return std::max<std::int64_t>(a ? std::ssize(a->integers) : 0, b ? std::ssize(b->texts) : 0);
}

std::int64_t rows_of(const NodeShaper& op) {
  const Dims& x = op.dims(0);
  return x.size() >= 2 ? x[0] : 1;
}

void floats_like(const NodeShaper& op) { op.set(0, DType::f32, op.dims(0)); }
void unchanged(const NodeShaper& op) { op.same_shape(0, 0); }

/// Classes [N] and scores [N, E].
void classifier(const NodeShaper& op) {
  const bool integers = op.node().attribute("classlabels_ints") || op.node().attribute("classlabels_int64s");
  const std::int64_t classes = std::max(length_of(op, "classlabels_ints", "classlabels_strings"),
                                        length_of(op, "classlabels_int64s", "classlabels_strings"));
  op.set(0, integers ? DType::i64 : DType::string, {rows_of(op)});
  op.set(1, DType::f32, {rows_of(op), std::max<std::int64_t>(classes, 1)});
}

void regressor(const NodeShaper& op) {
  op.set(0, DType::f32, {rows_of(op), op.node().integer("targets", op.node().integer("n_targets", 1))});
}

void tree_ensemble(const NodeShaper& op) { op.set(0, op.dtype(0), {rows_of(op), op.node().integer("n_targets", 1)}); }

/// Strings become integers, or the other way round.
void category_mapper(const NodeShaper& op) {
  op.set(0, op.dtype(0) == DType::string ? DType::i64 : DType::string, op.dims(0));
}

void label_encoder(const NodeShaper& op) {
  DType to = DType::string;
  if (op.node().attribute("values_int64s") || op.node().attribute("default_int64")) to = DType::i64;
  if (op.node().attribute("values_floats") || op.node().attribute("default_float")) to = DType::f32;
  if (op.node().attribute("values_strings")) to = DType::string;
  if (const Attribute* values = op.node().attribute("values_tensor"); values && values->tensor)
    to = values->tensor->dtype;
  op.set(0, to, op.dims(0));
}

void one_hot_encoder(const NodeShaper& op) {
  Dims result = op.dims(0);
  result.push_back(length_of(op, "cats_int64s", "cats_strings"));
  op.set(0, DType::f32, std::move(result));
}

/// All inputs side by side, [N, sum of columns].
void feature_vectorizer(const NodeShaper& op) {
  std::int64_t columns = 0;
  for (std::size_t i = 0; i < op.input_count(); ++i) {
    const Dims& d = op.dims(i);
    op.require(!d.empty() && d.size() <= 2, "an input must have 1 or 2 dimensions");
    columns = checked_add(columns, d.back());
  }
  op.set(0, DType::f32, {rows_of(op), columns});
}

/// ArrayFeatureExtractor(X, Y): the elements Y of X's last axis.
void array_feature_extractor(const NodeShaper& op) {
  Dims result = op.dims(0);
  op.require(!result.empty(), "the input is a scalar");
  if (result.size() == 1) result.insert(result.begin(), 1);
  result.back() = element_count(op.dims(1));
  op.set(0, op.dtype(0), std::move(result));
}

void dict_vectorizer(const NodeShaper& op) {
  op.set(0, DType::f32, {length_of(op, "int64_vocabulary", "string_vocabulary")});
}

/// A sequence of maps has no tensors.
void zip_map(const NodeShaper& op) { op.set_sequence(0, DType::f32, {}); }

void cast_map(const NodeShaper& op) { op.fail("the size of a map depends on data that only a run knows"); }

constexpr OperatorRule rules[] = {
    {"ArrayFeatureExtractor", array_feature_extractor},
    {"Binarizer", unchanged},
    {"CastMap", cast_map},
    {"CategoryMapper", category_mapper},
    {"DictVectorizer", dict_vectorizer},
    {"FeatureVectorizer", feature_vectorizer},
    {"Imputer", unchanged},
    {"LabelEncoder", label_encoder},
    {"LinearClassifier", classifier},
    {"LinearRegressor", regressor},
    {"Normalizer", floats_like},
    {"OneHotEncoder", one_hot_encoder},
    {"SVMClassifier", classifier},
    {"SVMRegressor", regressor},
    {"Scaler", floats_like},
    {"TreeEnsemble", tree_ensemble},
    {"TreeEnsembleClassifier", classifier},
    {"TreeEnsembleRegressor", regressor},
    {"ZipMap", zip_map},
};

}  // namespace

std::span<const OperatorRule> machine_learning_rules() { return rules; }

}  // namespace headroom
