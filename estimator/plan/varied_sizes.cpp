#include "estimator/plan/varied_sizes.h"

#include <algorithm>

#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/bind/dim_meaning.h"

namespace headroom {
namespace {

DimMeaning meaning_of(const Dim& d, const DimPlace& place) {
  const DimMeaning by_name = d.param.empty() ? DimMeaning::unknown : meaning_by_name(d.param, place.axis);
  return by_name == DimMeaning::unknown ? meaning_by_place(place) : by_name;
}

/// A fixed size, or that of the dimension in the scenario.
std::int64_t size_of(const Dim& d, std::size_t axis, const Scenario& s) {
  if (d.value >= 0) return d.value;
  if (const auto given = s.dims.find(d.param); given != s.dims.end()) return given->second;
  if (axis == 0 && s.batch) return *s.batch;
  throw usage_error("--max resolution needs every other size of the images", "",
                    "give --batch, and --dim for the rest");
}

void check_declared(const Model& model, const std::string& name) {
  std::vector<std::string> names{"batch", "seq", "resolution"};
  for (const GraphValue& input : model.graph().inputs)
    for (const Dim& d : input.type.dims) {
      if (d.param == name) return;
      if (!d.param.empty()) names.emplace_back(d.param);
    }
  const auto near = nearest(name, names);
  throw usage_error("--max " + printable(name) + ": the model has no such dimension", "",
                    near.empty() ? "`headroom inspect --stage graph` lists its inputs with their dimensions"
                                 : "did you mean '" + printable(near) + "'?");
}

}  // namespace

VariedSizes::VariedSizes(const Model& model, const std::string& names) : model_(model) {
  for (const std::string_view name : split(names, ','))
    if (!name.empty()) names_.emplace_back(name);
  for (const std::string& name : names_)
    if (name == "resolution")
      find_images();
    else if (name != "batch" && name != "seq")
      check_declared(model, name);
}

void VariedSizes::find_images() {
  for (const GraphValue& input : model_.graph().inputs) {
    Image image{.input = std::string(model_.name_of(input.value)), .dims = {}, .sides = {}};
    image.dims.assign(input.type.dims.begin(), input.type.dims.end());
    bool nameless = false;
    for (std::size_t axis = 0; axis < image.dims.size(); ++axis) {
      const Dim& d = image.dims[axis];
      if (meaning_of(d, {.input = image.input,
                         .dtype = input.type.dtype,
                         .rank = image.dims.size(),
                         .axis = axis,
                         .made_up = d.param.empty() || is_made_up(d.param)}) != DimMeaning::spatial)
        continue;
      image.sides.push_back(axis);
      if (d.param.empty())
        nameless = true;
      else
        named_sides_.emplace_back(d.param);
    }
    if (nameless) images_.push_back(std::move(image));
  }
  if (named_sides_.empty() && images_.empty())
    throw usage_error("--max resolution: none of the model's inputs is an image", "",
                      "name the dimension: `headroom inspect --stage graph` lists them");
}

Scenario VariedSizes::at(Scenario s, std::int64_t n) const {
  for (const std::string& name : names_)
    if (name == "batch")
      s.batch = n;
    else if (name == "seq")
      s.sequence = n;
    else if (name != "resolution")
      s.dims[name] = n;
  for (const std::string& name : named_sides_) s.dims[name] = n;
  for (const Image& image : images_) {
    std::vector<std::int64_t>& shape = s.shapes[image.input];
    shape.clear();
    for (std::size_t axis = 0; axis < image.dims.size(); ++axis)
      shape.push_back(std::find(image.sides.begin(), image.sides.end(), axis) != image.sides.end()
                          ? n
                          : size_of(image.dims[axis], axis, s));
  }
  return s;
}

void VariedSizes::check(const ShapedPrograms& programs) const {
  const auto& dims = programs.graphs[0]->dims;
  for (const std::string& name : names_) {
    const bool found = name == "resolution" || std::any_of(dims.begin(), dims.end(), [&](const BoundDim& d) {
                         if (d.source == "fixed by the file") return false;
                         return name == "batch" ? d.meaning == DimMeaning::batch
                                : name == "seq" ? d.meaning == DimMeaning::sequence
                                                : d.name == name;
                       });
    if (found) continue;
    std::string all;
    for (const BoundDim& d : dims) all += (all.empty() ? "" : ", ") + d.name;
    throw usage_error("--max " + printable(name) + ": the model has no such dimension that can be varied", "",
                      all.empty() ? "export it with that axis dynamic, as models/export.py does"
                                  : "its dimensions are " + printable(all, 300));
  }
}

}  // namespace headroom
