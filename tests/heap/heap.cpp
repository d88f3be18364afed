// The program's operator new and delete: blocks of all sizes that never overlap, freed in any order and by any thread.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <random>
#include <thread>
#include <vector>

namespace {

struct Block {
  unsigned char* at;
  std::size_t size;
  unsigned char mark;

  bool intact() const {
    return std::all_of(at, at + size, [this](unsigned char c) { return c == mark; });
  }
};

Block made(std::size_t size, unsigned char mark) {
  auto* at = static_cast<unsigned char*>(::operator new(size));
  std::memset(at, mark, size);
  return {at, size, mark};
}

/// `rounds` blocks of up to 64 KiB, most of them small, a third freed on the way; counts those that were written to.
std::vector<Block> survivors(unsigned seed, int rounds, int& broken) {
  std::mt19937 random(seed);
  std::vector<Block> alive;
  for (int i = 0; i < rounds; ++i) {
    alive.push_back(made(random() % (random() % 100 == 0 ? 65'536 : 1'500), static_cast<unsigned char>(random())));
    if (random() % 3 != 0) continue;
    std::swap(alive[random() % alive.size()], alive.back());
    broken += !alive.back().intact();
    ::operator delete(alive.back().at);
    alive.pop_back();
  }
  return alive;
}

TEST_CASE("every size is aligned and its own") {
  std::vector<Block> blocks;
  for (std::size_t size = 0; size < 3000; ++size) blocks.push_back(made(size, static_cast<unsigned char>(size)));
  for (const Block& b : blocks) {
    CHECK(reinterpret_cast<std::uintptr_t>(b.at) % __STDCPP_DEFAULT_NEW_ALIGNMENT__ == 0);
    CHECK(b.intact());
  }
  for (const Block& b : blocks) ::operator delete(b.at, b.size);
}

TEST_CASE("blocks of all magnitudes") {
  std::vector<Block> blocks;
  for (std::size_t size = 2048; size < std::size_t{4} << 20; size += size / 11)
    for (int i = 0; i < 3; ++i) blocks.push_back(made(size, static_cast<unsigned char>(blocks.size())));
  for (const Block& b : blocks) CHECK(b.intact());
  for (const Block& b : blocks) ::operator delete(b.at);
}

TEST_CASE("wider alignments") {
  for (std::size_t alignment = 1; alignment <= 4096; alignment *= 2)
    for (const std::size_t size : {1, 100, 5'000, 2'000'000}) {
      void* const p = ::operator new(size, std::align_val_t(alignment));
      CHECK(reinterpret_cast<std::uintptr_t>(p) % alignment == 0);
      std::memset(p, 1, size);
      ::operator delete(p, std::align_val_t(alignment));
    }
}

TEST_CASE("a freed block is handed out again") {
  void* const first = ::operator new(48);
  ::operator delete(first, 48);
  void* const second = ::operator new(40);
  CHECK(second == first);
  ::operator delete(second);
}

TEST_CASE("blocks of one thread, freed by another") {
  int broken[2] = {};
  std::vector<Block> alive[2];
  {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 2; ++i) threads.emplace_back([&, i] { alive[i] = survivors(i, 20'000, broken[i]); });
    for (std::thread& t : threads) t.join();
  }
  for (const auto& blocks : alive)
    for (const Block& b : blocks) {
      broken[0] += !b.intact();
      ::operator delete(b.at);
    }
  CHECK(broken[0] + broken[1] == 0);
}

TEST_CASE("deleting null does nothing") { ::operator delete(nullptr); }

}  // namespace
