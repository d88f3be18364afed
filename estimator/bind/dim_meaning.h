// DimMeaning: what a symbolic dimension of an input stands for, by its name and by where it sits.
#pragma once

#include <cstddef>
#include <string_view>

#include "estimator/base/dtype.h"
#include "estimator/bind/shaped_graph.h"

namespace headroom {

/// What the name says, for a dim at `axis`: batch, sequence, past (tokens in a cache), spatial; `other` for a name that
/// certainly means something else (channels, heads); unknown when the name says nothing ("s77", "x_dynamic_axes_1",
/// "").
DimMeaning meaning_by_name(std::string_view name, std::size_t axis);

/// Whether an exporter made the name up, so that it says nothing.
bool is_made_up(std::string_view name);

/// Whether the name says "cached and new tokens together".
bool is_total_length(std::string_view name);

struct DimPlace {
  std::string_view input;  ///< name of the input
  DType dtype = DType::undefined;
  std::size_t rank = 0;
  std::size_t axis = 0;
  bool made_up = true;  ///< the dim's name says nothing
};

/// What the place says.
DimMeaning meaning_by_place(const DimPlace& place);

}  // namespace headroom
