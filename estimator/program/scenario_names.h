// The scenario's choices by name, as the command line, the JSON and a runner's job write them.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "estimator/program/scenario.h"

namespace headroom {

template <class T>
using Named = std::pair<std::string_view, T>;

inline constexpr auto task_names = std::to_array<Named<Task>>({{"train", Task::train}, {"infer", Task::infer}});
inline constexpr auto precision_names = std::to_array<Named<Precision>>({{"fp32", Precision::fp32},
                                                                         {"tf32", Precision::tf32},
                                                                         {"fp16", Precision::fp16},
                                                                         {"bf16", Precision::bf16},
                                                                         {"amp-fp16", Precision::amp_fp16},
                                                                         {"amp-bf16", Precision::amp_bf16}});
inline constexpr auto cast_on_names = std::to_array<Named<CastOn>>({{"cpu", CastOn::cpu}, {"gpu", CastOn::gpu}});
inline constexpr auto optimizer_names =
    std::to_array<Named<OptimizerKind>>({{"sgd", OptimizerKind::sgd},
                                         {"sgd-momentum", OptimizerKind::sgd_momentum},
                                         {"adam", OptimizerKind::adam},
                                         {"adamw", OptimizerKind::adamw},
                                         {"adagrad", OptimizerKind::adagrad},
                                         {"rmsprop", OptimizerKind::rmsprop},
                                         {"adadelta", OptimizerKind::adadelta},
                                         {"adafactor", OptimizerKind::adafactor},
                                         {"lion", OptimizerKind::lion},
                                         {"muon", OptimizerKind::muon},
                                         {"adamw8bit", OptimizerKind::adamw8bit},
                                         {"none", OptimizerKind::none}});
inline constexpr auto optimizer_impl_names = std::to_array<Named<OptimizerImpl>>(
    {{"foreach", OptimizerImpl::foreach}, {"fused", OptimizerImpl::fused}, {"for-loop", OptimizerImpl::for_loop}});
inline constexpr auto loss_names = std::to_array<Named<LossKind>>({{"cross-entropy", LossKind::cross_entropy},
                                                                   {"causal-lm", LossKind::causal_lm},
                                                                   {"mse", LossKind::mse},
                                                                   {"sum", LossKind::sum},
                                                                   {"none", LossKind::none}});
inline constexpr auto zero_grad_names =
    std::to_array<Named<ZeroGrad>>({{"after-step", ZeroGrad::after_step},
                                    {"before-forward", ZeroGrad::before_forward},
                                    {"before-backward", ZeroGrad::before_backward}});
inline constexpr auto outputs_names =
    std::to_array<Named<OutputsKept>>({{"keep", OutputsKept::keep}, {"drop", OutputsKept::drop}});
inline constexpr auto leak_names = std::to_array<Named<Leak>>({{"none", Leak::none}, {"loss", Leak::loss}});
inline constexpr auto attention_names =
    std::to_array<Named<AttentionBackend>>({{"auto", AttentionBackend::automatic},
                                            {"math", AttentionBackend::math},
                                            {"efficient", AttentionBackend::efficient},
                                            {"flash", AttentionBackend::flash},
                                            {"cudnn", AttentionBackend::cudnn}});
inline constexpr auto parallel_names = std::to_array<Named<Parallel>>({{"none", Parallel::none},
                                                                       {"ddp", Parallel::ddp},
                                                                       {"zero1", Parallel::zero1},
                                                                       {"zero2", Parallel::zero2},
                                                                       {"fsdp2", Parallel::fsdp2}});

template <class T, std::size_t N>
constexpr std::string_view name_in(const std::array<Named<T>, N>& names, T value) {
  for (const auto& [name, v] : names)
    if (v == value) return name;
  return "";
}

}  // namespace headroom
