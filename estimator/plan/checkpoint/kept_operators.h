// What selective checkpointing keeps: operators whose results cost more to make again than to hold.
#pragma once

#include <string>
#include <vector>

namespace headroom {

/// Lists for torch.utils.checkpoint.create_selective_checkpoint_contexts that a plan chooses from, by segment:
/// attention alone; products, convolutions and attention. Of attention every kernel that PyTorch may choose.
const std::vector<std::vector<std::string>>& kept_operators();

}  // namespace headroom
