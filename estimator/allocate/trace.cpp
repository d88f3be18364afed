#include "estimator/allocate/trace.h"

namespace headroom {

std::string_view name_of(Action action) {
  switch (action) {
    case Action::alloc:
      return "alloc";
    case Action::free_requested:
      return "free_requested";
    case Action::free_completed:
      return "free_completed";
    case Action::segment_alloc:
      return "segment_alloc";
    case Action::segment_free:
      return "segment_free";
    case Action::segment_map:
      return "segment_map";
    case Action::segment_unmap:
      return "segment_unmap";
    case Action::oom:
      return "oom";
  }
  return "";
}

std::string_view name_of(BlockState state) {
  switch (state) {
    case BlockState::inactive:
      return "inactive";
    case BlockState::active_allocated:
      return "active_allocated";
    case BlockState::active_pending_free:
      return "active_pending_free";
  }
  return "";
}

}  // namespace headroom
