// RANK (`wirespeed-rank`): SAIL's levels 16, 24 and 32, each run of equal elements of a chunk stored once.
//
// Three reads a lookup, of which the first can be of shared memory, where chunk ids of 2 bytes fit: 128 KB.

#pragma once
#include "batch.cuh"

// Words of a chunk, and elements of a word.
WS_CONSTANT(rank, RANK_WORDS, 8)
WS_CONSTANT(rank, RANK_WORD, 32)
// Elements of level 16.
WS_CONSTANT(rank, RANK_SLOTS, 1 << 16)

// The number of set bits.
WS_FN u32 count_ones(u32 bits) {
#if WS_GPU
    return __popc(bits);
#else
    return u32(__builtin_popcount(bits));
#endif
}

// Chunk ids of type I, runs of type W: the top bit says that a chunk of level 32 follows. STAGED has level 16 in shared memory.
template <class I, class W, bool STAGED>
struct Rank {
    const I* level16;
    const u64* level24;
    const u64* level32;
    const W* runs;

    static constexpr u32 LEADS_ON = 1u << (8 * sizeof(W) - 1);

    WS_FN void prepare(const Block& block) const {
        if constexpr (STAGED) stage(block, block.template shared<u8>(), level16, u32(RANK_SLOTS * sizeof(I)));
    }

    template <int N>
    WS_FN void find(const Block& block, const u32* keys, u32* found) const {
        u32 at[N];
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            if constexpr (STAGED) {
                at[i] = block.template shared<I>()[keys[i] >> 16];
            } else {
                at[i] = element(level16 + (keys[i] >> 16));
            }
        }
        WS_UNROLL
        for (int i = 0; i < N; i++) at[i] = run_of(level24, at[i], keys[i] >> 8);
        WS_UNROLL
        for (int i = 0; i < N; i++) found[i] = element(runs + at[i]);
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            if (found[i] & LEADS_ON) {
                u32 last = element(runs + run_of(level32, found[i] ^ LEADS_ON, keys[i]));
                // Nothing leads on from level 32. In an image that we did not write it may say so.
                found[i] = last & LEADS_ON ? 0 : last;
            }
        }
    }

    // The run of an element of a chunk: that of the last octet.
    static WS_FN u32 run_of(const u64* level, u32 chunk, u32 octet) {
        u64 word = element(level + (chunk * RANK_WORDS + octet / RANK_WORD % RANK_WORDS));
        u32 starts = u32(word) << (u32(RANK_WORD) - 1 - octet % u32(RANK_WORD));
        return u32(word >> 32) + count_ones(starts);
    }
};
