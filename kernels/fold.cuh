// FOLD (`wirespeed-fold`): SAIL's levels with equal chunks stored once.
//
// IPv4 reads an array of 2^18 chunk numbers and an element of a chunk. IPv6 goes by strides, whichever a table has, until an
// element is a next hop: strides and sections are of the argument, the same for all threads, so that one kernel does for
// all shapes. Where the first step's elements fit there, a second kernel has them in shared memory.

#pragma once
#include "batch.cuh"

WS_CONSTANT(fold_v4, FOLD_SLOT_BITS, 18)
// Elements of a chunk of level 24 and of one of level 32.
WS_CONSTANT(fold_v4, FOLD_SHORT, 64)
WS_CONSTANT(fold_v4, FOLD_LONG, 256)
// Steps that an argument has room for.
WS_CONSTANT(fold_v6, FOLD_MOST_STEPS, 16)

// Numbers of chunks of type I, elements of chunks of type W: a next hop, or all ones where there are longer prefixes.
template <class I, class W>
struct FoldV4 : InMemory {
    const I* c18;
    const W* n24;
    // Elements of 2 or 4 bytes.
    const void* b18;
    const u32* c24;
    const W* n32;
    u64 b18_bytes;

    template <int N>
    WS_FN void find(const Block&, const u32* keys, u32* found) const {
        constexpr u32 MARK = W(~W(0));
        WS_UNROLL
        for (int i = 0; i < N; i++) found[i] = element(c18 + slot(keys[i]));
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            // There are fewer than 2^29 elements.
            found[i] = element(n24 + (found[i] * u32(FOLD_SHORT) + short_element(keys[i])));
        }
        bool any = false;
        WS_UNROLL
        for (int i = 0; i < N; i++) any |= found[i] == MARK;
        if (!any) return;
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            if (found[i] == MARK) found[i] = long_prefix(keys[i]);
        }
    }

    // The next hop where prefixes are longer than 24 bits.
    WS_FN u32 long_prefix(u32 key) const {
        u64 block = b18_bytes == 2 ? element(static_cast<const u16*>(b18) + slot(key))
                                   : element(static_cast<const u32*>(b18) + slot(key));
        u64 chunk = element(c24 + block * FOLD_SHORT + short_element(key));
        return element(n32 + chunk * FOLD_LONG + key % u32(FOLD_LONG));
    }

    static WS_FN u32 slot(u32 key) { return key >> (32 - FOLD_SLOT_BITS); }
    static WS_FN u32 short_element(u32 key) { return (key >> 8) % u32(FOLD_SHORT); }
};

// Elements of type W: below `base` a next hop, else a chunk of the next step. STAGED has the first step in shared memory.
template <class W, bool STAGED>
struct FoldV6 {
    const W* elements[FOLD_MOST_STEPS];
    u32 base;
    u32 steps;
    // Of each step the bits before it, and how many it takes: 1 to 32.
    u8 from[FOLD_MOST_STEPS];
    u8 stride[FOLD_MOST_STEPS];

    WS_FN void prepare(const Block& block) const {
        if constexpr (STAGED) stage(block, block.template shared<u8>(), elements[0], u32(sizeof(W)) << stride[0]);
    }

    template <int N>
    WS_FN void find(const Block& block, const Address6* keys, u32* found) const {
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            u32 at = bits(keys[i], 0, stride[0]);
            if constexpr (STAGED) {
                found[i] = block.template shared<W>()[at];
            } else {
                found[i] = element(elements[0] + at);
            }
        }
        for (u32 step = 1; step < steps; step++) {
            bool any = false;
            WS_UNROLL
            for (int i = 0; i < N; i++) any |= found[i] >= base;
            if (!any) break;
            if (from[step] + stride[step] <= 64) {
                go_on<N, true>(step, keys, found);
            } else {
                go_on<N, false>(step, keys, found);
            }
        }
    }

    // A step of the keys that are not done; UPPER where it ends in the first 64 bits.
    template <int N, bool UPPER>
    WS_FN void go_on(u32 step, const Address6* keys, u32* found) const {
        const W* of_step = elements[step];
        u32 before = from[step], count = stride[step];
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            u32 within = UPPER ? u32(keys[i].high << before >> (64 - count)) : bits(keys[i], before, count);
            u64 at = u64(found[i] - base) << count | within;
            found[i] = element_if(found[i] >= base, of_step + at, found[i]);
        }
    }
};
