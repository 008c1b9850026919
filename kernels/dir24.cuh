// DIR-24-8 (`wirespeed-dir24`): one read for each key, and for few a second one.

#pragma once
#include "batch.cuh"

WS_CONSTANT(dir24, DIR24_CHUNK, 256)

// Entries of W bytes; the top bit says that a chunk follows.
template <class W>
struct Dir24 : InMemory {
    const W* tbl24;
    const W* tbl8;

    template <int N>
    WS_FN void find(const Block&, const u32* keys, u32* found) const {
        constexpr u32 BIT = 1u << (8 * sizeof(W) - 1);
        WS_UNROLL
        for (int i = 0; i < N; i++) found[i] = element(tbl24 + (keys[i] >> 8));
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            if (found[i] & BIT) {
                u64 chunk = found[i] ^ BIT;
                found[i] = element(tbl8 + (chunk * DIR24_CHUNK + (keys[i] & 255)));
            }
        }
    }
};
