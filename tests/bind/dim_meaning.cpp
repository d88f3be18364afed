#include "estimator/bind/dim_meaning.h"

#include <doctest/doctest.h>

using namespace headroom;

TEST_CASE("meaning by name") {
  for (const char* name : {"batch", "batch_size", "Batch", "N", "B", "bs", "bsz", "input_batch", "decoder_batch_size"})
    CHECK_MESSAGE(meaning_by_name(name, 0) == DimMeaning::batch, name);
  for (const char* name : {"seq", "sequence", "sequence_length", "seq_len", "T", "L", "time", "num_tokens",
                           "encoder_sequence_length", "dec_seq", "max_length", "time_steps"})
    CHECK_MESSAGE(meaning_by_name(name, 1) == DimMeaning::sequence, name);
  for (const char* name : {"past_sequence_length", "past", "past_seq_len", "cache_length"})
    CHECK_MESSAGE(meaning_by_name(name, 2) == DimMeaning::past, name);
  for (const char* name : {"height", "width", "H", "W", "image_height"})
    CHECK_MESSAGE(meaning_by_name(name, 2) == DimMeaning::spatial, name);
  for (const char* name : {"channels", "num_heads", "hidden_size", "total_sequence_length"})
    CHECK_MESSAGE(meaning_by_name(name, 1) == DimMeaning::other, name);
  for (const char* name : {"s77", "s0", "unk__12", "None", "?", "", "x_dynamic_axes_1", "dim_0", "u3", "points", "12"})
    CHECK_MESSAGE(meaning_by_name(name, 1) == DimMeaning::unknown, name);
  CHECK(meaning_by_name("N", 1) == DimMeaning::unknown);
}

TEST_CASE("meaning by place") {
  const auto at = [](DType dtype, std::size_t rank, std::size_t axis, std::string_view input = "x") {
    return meaning_by_place({input, dtype, rank, axis, true});
  };
  CHECK(at(DType::f32, 4, 0) == DimMeaning::batch);
  CHECK(at(DType::i64, 2, 1) == DimMeaning::sequence);
  CHECK(at(DType::f32, 3, 1) == DimMeaning::sequence);
  CHECK(at(DType::f32, 4, 2) == DimMeaning::spatial);
  CHECK(at(DType::f32, 4, 1) == DimMeaning::unknown);
  CHECK(at(DType::i64, 4, 2) == DimMeaning::unknown);
  CHECK(at(DType::f32, 4, 2, "past_key_values.0.key") == DimMeaning::past);
  CHECK(meaning_by_place({"x", DType::f32, 3, 1, false}) == DimMeaning::unknown);
}
