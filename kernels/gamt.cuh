// GAMT (`wirespeed-gamt`): a multi-bit trie whose levels are arrays of units, each a leaf or where in the next level its child
// begins (section 3.1, Algorithm 1). GAMT_T's leaves hold next hops, GAMT_S's the slots of prefixes in a table of them.
//
// A child always lies in the next level, so the keys of all threads are in the same level at the same time. How many bits it
// reads, how wide its units are and what they say is the same for all: it comes with the kernel's argument, through the constant
// cache, and no thread parts ways over it. A lookup reads one unit a level, each where the one before leads, until all the
// thread's keys are done; GAMT_S's one next hop more. The first levels mostly stay in L1, the last one, by far the
// widest, is what L2 has to bring: a sector of 32 bytes for each key.
//
// Units and slots are counted with 32 bits: a level has 2^32 units at most.

#pragma once
#include "batch.cuh"
#include "reads.cuh"

// Bits of the paper's unit below inf; they are 0 in a leaf.
WS_CONSTANT(gamt, GAMT_JUMP_BITS, 8)

// How a level is read.
struct GamtLevel {
    const void* units;
    // Narrow units of 1 or 2 bytes: the first value that leads on, and the stride of the level that it leads to.
    u32 base;
    u8 below;
    // The first bit of the address that it reads, and how many.
    u8 from;
    u8 stride;
    // Bytes of a unit: 1 or 2, narrow; 4 or 8, the paper's.
    u8 width;
};

// What a unit says: whether it leads on, and to where, or its leaf.
struct GamtStep {
    u32 to;
    bool on;
};
template <class U>
struct GamtUnit {
    typedef u32 Type;
};
template <>
struct GamtUnit<u64> {
    typedef u64 Type;
};
template <class U>
WS_FN GamtStep gamt_step(const GamtLevel& level, typename GamtUnit<U>::Type unit) {
    if constexpr (sizeof(U) >= 4) {
        return GamtStep{u32(unit >> GAMT_JUMP_BITS), (u32(unit) & ((1u << GAMT_JUMP_BITS) - 1)) != 0};
    } else {
        bool on = unit >= level.base;
        return GamtStep{on ? (unit - level.base) << level.below : unit, on};
    }
}

// A level of units U, for the keys in `open`; those that lead on.
template <class U, int N, class Address>
WS_FN u32 gamt_level(const GamtLevel& level, u32 open, const Address* keys, u32* to) {
    // As read, or wide enough for what is read.
    typename GamtUnit<U>::Type units[N];
    WS_UNROLL
    for (int i = 0; i < N; i++) {
        units[i] = 0;
        u32 at = to[i] + bits(keys[i], level.from, level.stride);
        read_if(open & 1u << i, static_cast<const U*>(level.units) + at, units[i]);
    }
    u32 still_open = 0;
    WS_UNROLL
    for (int i = 0; i < N; i++) {
        GamtStep step = gamt_step<U>(level, units[i]);
        bool is_open = open & 1u << i;
        to[i] = is_open ? step.to : to[i];
        if (is_open && step.on) still_open |= 1u << i;
    }
    return still_open;
}

// Results of W bytes, of up to LEVELS levels.
template <class W, int LEVELS>
struct Gamt : InMemory {
    // GAMT_S's table; null in GAMT_T.
    const W* next_hops;
    u64 count;
    GamtLevel levels[LEVELS];

    template <int N, class Address>
    WS_FN void find(const Block&, const Address* keys, u32* found) const {
        WS_UNROLL
        for (int i = 0; i < N; i++) found[i] = 0;
        u32 open = (1u << N) - 1;
        for (u32 at = 0; at < count && open != 0; at++) {
            const GamtLevel& level = levels[at];
            if (level.width == 1) {
                open = gamt_level<u8, N>(level, open, keys, found);
            } else if (level.width == 2) {
                open = gamt_level<u16, N>(level, open, keys, found);
            } else if (level.width == 4) {
                open = gamt_level<u32, N>(level, open, keys, found);
            } else {
                // Of wide keys half at a time: units as wide as these, which few tables have, would take all registers.
                constexpr int HALF = sizeof(Address) > 4 ? N / 2 : 0;
                u32 upper = gamt_level<u64, N - HALF>(level, open >> HALF, keys + HALF, found + HALF) << HALF;
                if constexpr (HALF > 0) upper |= gamt_level<u64, HALF>(level, open, keys, found);
                open = upper;
            }
        }
        if (next_hops != nullptr) {
            WS_UNROLL
            for (int i = 0; i < N; i++) found[i] = element(next_hops + found[i]);
        }
    }
};

// A level reads one bit at least.
WS_CONSTANT(gamt, GAMT_MOST_LEVELS_V4, 32)
WS_CONSTANT(gamt, GAMT_MOST_LEVELS_V6, 128)
template <class W>
using Gamt4 = Gamt<W, GAMT_MOST_LEVELS_V4>;
template <class W>
using Gamt6 = Gamt<W, GAMT_MOST_LEVELS_V6>;
