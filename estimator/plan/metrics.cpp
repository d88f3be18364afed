#include "estimator/plan/metrics.h"

#include <array>

namespace headroom {
namespace {

constexpr auto table = std::to_array<Metric>({
    {"allocated", "allocated_bytes", "allocated", [](const Estimate& e) { return e.peak_allocated; }},
    {"reserved", "reserved_bytes", "reserved", [](const Estimate& e) { return e.peak_reserved; }},
    {"device", "device_bytes", "on the device", [](const Estimate& e) { return e.peak_device; }},
    {"margin", "margin_device_bytes", "what the device figure can be short by",
     [](const Estimate& e) { return e.margin_device; }},
    {"weights", "weights_bytes", "weights", [](const Estimate& e) { return e.model.weight_bytes; }},
    {"gradients", "gradients_bytes", "gradients, all together", [](const Estimate& e) { return e.gradient_bytes; }},
    {"optimizer-state", "optimizer_state_bytes", "optimizer state",
     [](const Estimate& e) { return e.optimizer_state_bytes; }},
    {"activations", "activations_bytes", "saved for backward at the peak",
     [](const Estimate& e) { return e.category(Category::activations); }},
    {"workspaces", "workspaces_bytes", "library workspaces at the peak",
     [](const Estimate& e) { return e.category(Category::workspaces); }},
    {"fragmentation", "fragmentation_bytes", "reserved and not allocated",
     [](const Estimate& e) { return e.fragmentation; }},
});

}  // namespace

std::span<const Metric> metrics() { return table; }

}  // namespace headroom
