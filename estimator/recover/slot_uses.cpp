#include "estimator/recover/slot_uses.h"

namespace headroom::recovery {

SlotUses::SlotUses(const Program& program) : maker_(program.slot_count(), -1), first_(program.slot_count() + 1, 0) {
  for (std::size_t i = 0; i < program.calls.size(); ++i) {
    for (const SlotId o : program.calls[i].outputs)
      if (o.valid()) maker_[o.at()] = static_cast<std::int32_t>(i);
    for_each_read(program.calls[i], [&](SlotId s) { ++first_[s.at()]; });
  }
  // From counts to the ends of the slots' stretches, which become their beginnings as they are filled from behind.
  std::size_t reads = 0;
  for (std::size_t& f : first_) f = reads += f;
  readers_.resize(reads);
  for (std::size_t i = program.calls.size(); i-- > 0;)
    for_each_read(program.calls[i], [&](SlotId s) { readers_[--first_[s.at()]] = static_cast<std::int32_t>(i); });
}

}  // namespace headroom::recovery
