// FOLD cut at bit 16 (`wirespeed-fold`, module `hot`): for each 16 first bits a next hop or a chunk of 256 elements, and *hot
// blocks*, which know the next hops of a few runs of elements of the chunks that most keys fall into.
//
//                                                   reads that follow one another
//     a key that c16 ends, or a hot block           1 or 2, of shared memory: 81 % of random keys, 43 % by prefix
//     most others                                   1 more, an element of W bytes in L2
//     prefixes longer than /24 about the key        3 more
//
// c16 and all hot blocks take 226 KB of a multiprocessor's 228, which takes some microseconds to stage; programs for smaller
// batches stage c16 alone, or nothing.

#pragma once
#include "batch.cuh"

WS_CONSTANT(fold_hot, HOT_SLOT_BITS, 16)
// Elements of a chunk of level 24 and of one of level 32.
WS_CONSTANT(fold_hot, HOT_SHORT, 256)
WS_CONSTANT(fold_hot, HOT_LONG, 256)

// What of it lies in shared memory.
enum HotStaged { HOT_NOTHING, HOT_SLOTS, HOT_ALL };

// Slots of type I, elements of chunks of type W: a next hop, or all ones where there are longer prefixes.
template <class I, class W, HotStaged STAGED>
struct FoldHot {
    const I* c16;
    const W* n24;
    // Elements of 2 or 4 bytes.
    const void* b16;
    const u32* c24;
    const W* n32;
    const u64* hot;
    // Number of hot blocks, an even one.
    u32 blocks;
    u32 base;
    u64 b16_bytes;

    static constexpr u32 MARK = W(~W(0));
    static constexpr u32 SLOT_BYTES = sizeof(I) << HOT_SLOT_BITS;

    WS_FN void prepare(const Block& block) const {
        if constexpr (STAGED != HOT_NOTHING) stage(block, block.template shared<u8>(), c16, SLOT_BYTES);
        if constexpr (STAGED == HOT_ALL) stage(block, block.template shared<u8>() + SLOT_BYTES, hot, blocks * 8);
    }

    template <int N>
    WS_FN void find(const Block& block, const u32* keys, u32* found) const {
        u32 slots[N];
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            u32 slot = keys[i] >> (32 - HOT_SLOT_BITS);
            if constexpr (STAGED == HOT_NOTHING) {
                slots[i] = element(c16 + slot);
            } else {
                slots[i] = block.template shared<I>()[slot];
            }
        }
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            found[i] = MARK;
            if constexpr (STAGED == HOT_ALL) found[i] = by_block(block, slots[i] - base, short_element(keys[i]));
            if (slots[i] < base) found[i] = slots[i];
        }
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            // There are fewer than 2^29 elements.
            u32 at = (slots[i] - base) * u32(HOT_SHORT) + short_element(keys[i]);
            found[i] = element_if(found[i] == MARK, n24 + at, found[i]);
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

    // What the block of a chunk says of an element; all ones where it has none, or doesn't know.
    WS_FN u32 by_block(const Block& block, u32 chunk, u32 at) const {
        const auto* staged = reinterpret_cast<const Vector<u32, 2>*>(block.template shared<u8>() + SLOT_BYTES);
        // A slot with a next hop has a chunk past all others.
        auto words = staged_if(chunk < blocks, staged + chunk, Vector<u32, 2>{{0, ~0u}});
        u32 boundaries = words.at[0];
        u32 run = u32(at >= (boundaries & 255)) + u32(at >= (boundaries >> 8 & 255)) +
                  u32(at >= (boundaries >> 16 & 255));
        return words.at[1] >> (8 * run) & 255;
    }

    // The next hop where prefixes are longer than 24 bits.
    WS_FN u32 long_prefix(u32 key) const {
        u32 slot = key >> (32 - HOT_SLOT_BITS);
        u64 block = b16_bytes == 2 ? element(static_cast<const u16*>(b16) + slot)
                                   : element(static_cast<const u32*>(b16) + slot);
        u64 chunk = element(c24 + block * HOT_SHORT + short_element(key));
        return element(n32 + chunk * HOT_LONG + key % u32(HOT_LONG));
    }

    static WS_FN u32 short_element(u32 key) { return (key >> 8) % u32(HOT_SHORT); }
};
