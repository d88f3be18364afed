#include "estimator/read/shrink_guard.h"

#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace headroom {
namespace {

struct Slot {
  std::atomic<bool> taken;
  std::atomic<std::uintptr_t> begin;  // 0: guards nothing
  std::atomic<std::uintptr_t> end;
  std::atomic<bool> shrank;
};

std::array<Slot, 16> slots;
struct sigaction former_action;

/// Runs inside a page fault: only atomics and system calls.
void on_bus_error(int, siginfo_t* info, void*) {
  constexpr std::uintptr_t page = 4096;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr) / page * page;
  for (Slot& slot : slots) {
    if (address < slot.begin || address >= slot.end) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    void* const from = reinterpret_cast<void*>(address);
    if (mmap(from, slot.end - address, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != from) break;
    slot.shrank = true;
    return;
  }
  sigaction(SIGBUS, &former_action, nullptr);  // not ours: the access is repeated and ends as it would have
}

void install() {
  static const bool once = [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    return sigaction(SIGBUS, &action, &former_action) == 0;
  }();
  static_cast<void>(once);
}

}  // namespace

ShrinkGuard::ShrinkGuard(char* data, std::size_t size) : slot_(0) {
  install();
  while (slot_ < slots.size() && slots[slot_].taken.exchange(true)) ++slot_;
  if (slot_ == slots.size()) return;
  slots[slot_].shrank = false;
  slots[slot_].end = reinterpret_cast<std::uintptr_t>(data) + size;
  slots[slot_].begin = reinterpret_cast<std::uintptr_t>(data);
}

ShrinkGuard::~ShrinkGuard() {
  if (slot_ == slots.size()) return;
  slots[slot_].begin = 0;
  slots[slot_].end = 0;
  slots[slot_].taken = false;
}

bool ShrinkGuard::file_shrank() const { return slot_ < slots.size() && slots[slot_].shrank; }

}  // namespace headroom
