// The ceiling of any lookup: one independent read of a table for each key, and nothing else.

#pragma once
#include "batch.cuh"

template <class W>
struct Gather : InMemory {
    const W* elements;
    // One less than their number, a power of two.
    u64 mask;

    template <int N>
    WS_FN void find(const Block&, const u32* keys, u32* found) const {
        WS_UNROLL
        for (int i = 0; i < N; i++) found[i] = element(elements + (keys[i] & mask));
    }
};
