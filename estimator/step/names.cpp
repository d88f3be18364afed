#include "estimator/step/machine.h"

namespace headroom {

std::string_view name_of(Category c) {
  switch (c) {
    case Category::weights:
      return "weights";
    case Category::buffers:
      return "buffers";
    case Category::gradients:
      return "gradients";
    case Category::optimizer_state:
      return "optimizer_state";
    case Category::activations:
      return "activations";
    case Category::forward_temporaries:
      return "forward_temporaries";
    case Category::backward_temporaries:
      return "backward_temporaries";
    case Category::optimizer_temporaries:
      return "optimizer_temporaries";
    case Category::workspaces:
      return "workspaces";
    case Category::inputs:
      return "inputs";
  }
  return "";
}

std::string_view name_of(Phase p) {
  switch (p) {
    case Phase::setup:
      return "setup";
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::optimizer:
      return "optimizer";
    case Phase::zero_grad:
      return "zero_grad";
  }
  return "";
}

}  // namespace headroom
