#include "estimator/recover/keyword_arguments.h"

#include <algorithm>
#include <array>

#include "estimator/base/text.h"

namespace headroom::recovery {

namespace {

/// Sorted by target.
constexpr std::array list{
    KeywordArguments{"aten._to_copy.default", 1, "dtype,layout,device,pin_memory,non_blocking,memory_format"},
    KeywordArguments{"aten.add.Tensor", 2, "alpha"},
    KeywordArguments{"aten.add_.Tensor", 2, "alpha"},
    KeywordArguments{"aten.addbmm.default", 3, "beta,alpha"},
    KeywordArguments{"aten.addbmm_.default", 3, "beta,alpha"},
    KeywordArguments{"aten.addcdiv.default", 3, "value"},
    KeywordArguments{"aten.addcdiv_.default", 3, "value"},
    KeywordArguments{"aten.addcmul.default", 3, "value"},
    KeywordArguments{"aten.addcmul_.default", 3, "value"},
    KeywordArguments{"aten.addmm.default", 3, "beta,alpha"},
    KeywordArguments{"aten.addmm.dtype", 4, "beta,alpha"},
    KeywordArguments{"aten.addmm_.default", 3, "beta,alpha"},
    KeywordArguments{"aten.addmv.default", 3, "beta,alpha"},
    KeywordArguments{"aten.addmv_.default", 3, "beta,alpha"},
    KeywordArguments{"aten.addr.default", 3, "beta,alpha"},
    KeywordArguments{"aten.addr_.default", 3, "beta,alpha"},
    KeywordArguments{"aten.aminmax.default", 1, "dim,keepdim"},
    KeywordArguments{"aten.arange.default", 1, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.arange.start", 2, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.arange.start_step", 3, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.baddbmm.default", 3, "beta,alpha"},
    KeywordArguments{"aten.baddbmm.dtype", 4, "beta,alpha"},
    KeywordArguments{"aten.baddbmm_.default", 3, "beta,alpha"},
    KeywordArguments{"aten.bucketize.Scalar", 2, "out_int32,right"},
    KeywordArguments{"aten.bucketize.Tensor", 2, "out_int32,right"},
    KeywordArguments{"aten.chalf.default", 1, "memory_format"},
    KeywordArguments{"aten.clone.default", 1, "memory_format"},
    KeywordArguments{"aten.contiguous.default", 1, "memory_format"},
    KeywordArguments{"aten.cumprod.default", 2, "dtype"},
    KeywordArguments{"aten.cumprod_.default", 2, "dtype"},
    KeywordArguments{"aten.cumsum.default", 2, "dtype"},
    KeywordArguments{"aten.cumsum_.default", 2, "dtype"},
    KeywordArguments{"aten.div.Scalar_mode", 2, "rounding_mode"},
    KeywordArguments{"aten.div.Tensor_mode", 2, "rounding_mode"},
    KeywordArguments{"aten.div_.Scalar_mode", 2, "rounding_mode"},
    KeywordArguments{"aten.div_.Tensor_mode", 2, "rounding_mode"},
    KeywordArguments{"aten.divide.Scalar_mode", 2, "rounding_mode"},
    KeywordArguments{"aten.divide.Tensor_mode", 2, "rounding_mode"},
    KeywordArguments{"aten.divide_.Scalar_mode", 2, "rounding_mode"},
    KeywordArguments{"aten.divide_.Tensor_mode", 2, "rounding_mode"},
    KeywordArguments{"aten.einsum.default", 2, "path"},
    KeywordArguments{"aten.empty.memory_format", 1, "dtype,layout,device,pin_memory,memory_format"},
    KeywordArguments{"aten.empty_like.default", 1, "dtype,layout,device,pin_memory,memory_format"},
    KeywordArguments{"aten.expand.default", 2, "implicit"},
    KeywordArguments{"aten.eye.default", 1, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.eye.m", 2, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.full.default", 2, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.full_like.default", 2, "dtype,layout,device,pin_memory,memory_format"},
    KeywordArguments{"aten.gather.default", 3, "sparse_grad"},
    KeywordArguments{"aten.gelu.default", 1, "approximate"},
    KeywordArguments{"aten.gelu_.default", 1, "approximate"},
    KeywordArguments{"aten.hash_tensor.default", 2, "keepdim,mode"},
    KeywordArguments{"aten.index_add.default", 4, "alpha"},
    KeywordArguments{"aten.index_add_.default", 4, "alpha"},
    KeywordArguments{"aten.index_reduce.default", 5, "include_self"},
    KeywordArguments{"aten.index_reduce_.default", 5, "include_self"},
    KeywordArguments{"aten.kl_div.default", 3, "log_target"},
    KeywordArguments{"aten.linalg_norm.default", 4, "dtype"},
    KeywordArguments{"aten.linalg_norm.ord_str", 4, "dtype"},
    KeywordArguments{"aten.linalg_vector_norm.default", 4, "dtype"},
    KeywordArguments{"aten.linspace.Scalar_Tensor", 3, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.linspace.Tensor_Scalar", 3, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.linspace.Tensor_Tensor", 3, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.linspace.default", 3, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.logspace.Scalar_Tensor", 4, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.logspace.Tensor_Scalar", 4, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.logspace.Tensor_Tensor", 4, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.logspace.default", 4, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.mean.default", 1, "dtype"},
    KeywordArguments{"aten.mean.dim", 3, "dtype"},
    KeywordArguments{"aten.meshgrid.indexing", 1, "indexing"},
    KeywordArguments{"aten.nanmean.default", 3, "dtype"},
    KeywordArguments{"aten.nansum.default", 3, "dtype"},
    KeywordArguments{"aten.new_empty.default", 2, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.new_empty_strided.default", 3, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.new_full.default", 3, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.new_ones.default", 2, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.new_zeros.default", 2, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.nonzero_static.default", 1, "size,fill_value"},
    KeywordArguments{"aten.norm.ScalarOpt_dim_dtype", 4, "dtype"},
    KeywordArguments{"aten.norm.ScalarOpt_dtype", 2, "dtype"},
    KeywordArguments{"aten.ones.default", 1, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.ones_like.default", 1, "dtype,layout,device,pin_memory,memory_format"},
    KeywordArguments{"aten.prod.default", 1, "dtype"},
    KeywordArguments{"aten.prod.dim_int", 3, "dtype"},
    KeywordArguments{"aten.rand.default", 1, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.rand_like.default", 1, "dtype,layout,device,pin_memory,memory_format"},
    KeywordArguments{"aten.randn.default", 1, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.randn_like.default", 1, "dtype,layout,device,pin_memory,memory_format"},
    KeywordArguments{"aten.repeat_interleave.Tensor", 1, "output_size"},
    KeywordArguments{"aten.repeat_interleave.self_Tensor", 3, "output_size"},
    KeywordArguments{"aten.repeat_interleave.self_int", 3, "output_size"},
    KeywordArguments{"aten.resize.default", 2, "memory_format"},
    KeywordArguments{"aten.resize_.default", 2, "memory_format"},
    KeywordArguments{"aten.resize_as.default", 2, "memory_format"},
    KeywordArguments{"aten.resize_as_.default", 2, "memory_format"},
    KeywordArguments{"aten.round.decimals", 1, "decimals"},
    KeywordArguments{"aten.round_.decimals", 1, "decimals"},
    KeywordArguments{"aten.rsub.Tensor", 2, "alpha"},
    KeywordArguments{"aten.scalar_tensor.default", 1, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.scaled_dot_product_attention.default", 6, "scale,enable_gqa"},
    KeywordArguments{"aten.scatter.reduce", 4, "reduce"},
    KeywordArguments{"aten.scatter.value_reduce", 4, "reduce"},
    KeywordArguments{"aten.scatter_.reduce", 4, "reduce"},
    KeywordArguments{"aten.scatter_.value_reduce", 4, "reduce"},
    KeywordArguments{"aten.scatter_reduce.two", 5, "include_self"},
    KeywordArguments{"aten.scatter_reduce_.two", 5, "include_self"},
    KeywordArguments{"aten.searchsorted.Scalar", 2, "out_int32,right,side,sorter"},
    KeywordArguments{"aten.searchsorted.Tensor", 2, "out_int32,right,side,sorter"},
    KeywordArguments{"aten.sort.stable", 1, "stable,dim,descending"},
    KeywordArguments{"aten.std.correction", 2, "correction,keepdim"},
    KeywordArguments{"aten.std_mean.correction", 2, "correction,keepdim"},
    KeywordArguments{"aten.sub.Tensor", 2, "alpha"},
    KeywordArguments{"aten.sub_.Tensor", 2, "alpha"},
    KeywordArguments{"aten.subtract.Tensor", 2, "alpha"},
    KeywordArguments{"aten.subtract_.Tensor", 2, "alpha"},
    KeywordArguments{"aten.sum.default", 1, "dtype"},
    KeywordArguments{"aten.sum.dim_IntList", 3, "dtype"},
    KeywordArguments{"aten.sym_constrain_range.default", 1, "min,max"},
    KeywordArguments{"aten.sym_constrain_range_for_size.default", 1, "min,max"},
    KeywordArguments{"aten.to.dtype_layout", 1, "dtype,layout,device,pin_memory,non_blocking,copy,memory_format"},
    KeywordArguments{"aten.to_dense.default", 2, "masked_grad"},
    KeywordArguments{"aten.trapz.dx", 1, "dx,dim"},
    KeywordArguments{"aten.trapz.x", 2, "dim"},
    KeywordArguments{"aten.var.correction", 2, "correction,keepdim"},
    KeywordArguments{"aten.var_mean.correction", 2, "correction,keepdim"},
    KeywordArguments{"aten.zeros.default", 1, "dtype,layout,device,pin_memory"},
    KeywordArguments{"aten.zeros_like.default", 1, "dtype,layout,device,pin_memory,memory_format"},
};

}  // namespace

KeywordArgumentList keyword_arguments() { return {list.data(), list.data() + list.size()}; }

std::optional<std::size_t> keyword_position(std::string_view target, std::string_view keyword) {
  if (keyword == "device" || keyword == "layout" || keyword == "pin_memory" || keyword == "generator")
    return std::nullopt;
  const auto it = std::lower_bound(list.begin(), list.end(), target,
                                   [](const KeywordArguments& k, std::string_view t) { return k.target < t; });
  if (it == list.end() || it->target != target) return std::nullopt;
  std::size_t position = it->positional;
  for (const std::string_view name : split(it->names, ',')) {
    if (name == keyword) return position;
    ++position;
  }
  return std::nullopt;
}

}  // namespace headroom::recovery
