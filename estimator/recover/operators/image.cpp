// Resize, pixel shuffles, grid sampling.
#include <array>

#include "estimator/recover/operators/operators.h"
#include "estimator/recover/recovery.h"

namespace headroom::recovery {

namespace {

void resize(Recovery& r) {
  const Dims& out = r.out_dims();
  const std::size_t rank = out.size() >= 2 ? out.size() - 2 : 0;
  const Dims size(out.begin() + std::min<std::ptrdiff_t>(2, static_cast<std::ptrdiff_t>(out.size())), out.end());
  const std::string_view mode = r.onnx().text("mode", "nearest");
  const bool corners = r.onnx().text("coordinate_transformation_mode") == "align_corners";
  const std::string kind = std::to_string(rank) + "d";
  if (mode == "nearest") {
    r.emit("aten::upsample_nearest" + kind, {r.tensor(0), size});
  } else if (mode == "cubic" && rank == 2) {
    r.emit("aten::upsample_bicubic2d", {r.tensor(0), size, corners});
  } else {
    constexpr std::array names = {"", "linear", "bilinear", "trilinear"};
    r.emit("aten::upsample_" + std::string(names[std::min<std::size_t>(rank, 3)]) + kind, {r.tensor(0), size, corners});
  }
}

void depth_to_space(Recovery& r) { r.emit("aten::pixel_shuffle", {r.tensor(0), r.onnx().integer("blocksize", 1)}); }
void space_to_depth(Recovery& r) { r.emit("aten::pixel_unshuffle", {r.tensor(0), r.onnx().integer("blocksize", 1)}); }

void grid_sample(Recovery& r) {
  const std::string_view mode = r.onnx().text("mode", "linear"), padding = r.onnx().text("padding_mode", "zeros");
  const std::int64_t how = mode == "nearest" ? 1 : mode.ends_with("cubic") ? 2 : 0;
  const std::int64_t border = padding == "border" ? 1 : padding == "reflection" ? 2 : 0;
  r.emit("aten::grid_sampler", {r.tensor(0), r.tensor(1), how, border, r.onnx().integer("align_corners", 0) != 0});
}

constexpr std::array list{
    OperatorHandler{"Resize", resize},
    OperatorHandler{"Upsample", resize},
    OperatorHandler{"DepthToSpace", depth_to_space},
    OperatorHandler{"SpaceToDepth", space_to_depth},
    OperatorHandler{"GridSample", grid_sample},
};

}  // namespace

OperatorFamily image_operators() { return list; }

}  // namespace headroom::recovery
