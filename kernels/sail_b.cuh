// SAIL_B and SAIL_U (`wirespeed-sail`): bit maps of the prefix lengths, from the longest level up, and next hops where the
// first bit is set. One kernel for both, as levels are of the argument.

#pragma once
#include "batch.cuh"

// The pivot level, the last that has a bit map; most levels; addresses of a chunk.
WS_CONSTANT(sail_b, SAIL_B_PIVOT, 24)
WS_CONSTANT(sail_b, SAIL_B_MOST_LEVELS, 25)
WS_CONSTANT(sail_b, SAIL_B_CHUNK, 256)

// Next hops of type W, elements of the pivot level of type P, which is no narrower.
template <class W, class P>
struct SailB : InMemory {
    // Of each level, ascending; the last is the pivot, which has no array here.
    const u64* maps[SAIL_B_MOST_LEVELS];
    const W* next_hops[SAIL_B_MOST_LEVELS];
    const P* pivot;
    const W* n32;
    u32 levels;
    // Number of chunks of n32.
    u32 chunks;
    u8 level[32];

    template <int N>
    WS_FN void find(const Block&, const u32* keys, u32* found) const {
        constexpr u32 TOP = P(~P(0));
        u32 known = 0;
        WS_UNROLL
        for (int i = 0; i < N; i++) known |= bit(maps[levels - 1], keys[i] >> (32 - SAIL_B_PIVOT)) << i;
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            found[i] = 0;
            if (known >> i & 1) found[i] = element(pivot + (keys[i] >> (32 - SAIL_B_PIVOT)));
        }
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            u64 chunk = TOP - found[i];
            // A chunk that is not there is a next hop.
            if (known >> i & 1 && chunk < chunks) found[i] = element(n32 + chunk * SAIL_B_CHUNK + keys[i] % u32(SAIL_B_CHUNK));
        }
        for (u32 at = levels - 1; at-- > 0;) {
            if (known == (1u << N) - 1) return;
            const u64* map = maps[at];
            const W* of_level = next_hops[at];
            u32 shift = 32 - level[at];
            WS_UNROLL
            for (int i = 0; i < N; i++) {
                u32 prefix = u32(u64(keys[i]) >> shift);
                if (!(known >> i & 1) && bit(map, prefix)) {
                    known |= 1u << i;
                    found[i] = element(of_level + prefix);
                }
            }
        }
    }

    static WS_FN u32 bit(const u64* map, u32 at) { return u32(element(map + at / 64) >> (at % 64)) & 1; }
};
