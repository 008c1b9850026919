// SAIL_L (`wirespeed-sail`): the levels 16, 24, 32 and on by octets, each of next hops that say whether to go on, and beside
// them the chunks to go on in.
//
//                   reads that follow one another                            where
//     IPv4          1 for a key that level 16 ends                           shared memory, where it is staged
//                   2 for most others: an element of 1, 2 or 4 bytes         L2, at the real table's 7.6 MB
//                   4 for those with prefixes longer than /24 about them
//     IPv6          1, and for each level on 2, the last one's second left out
//
// Next hop and chunk lie in arrays apart, so that what mostly ends a lookup is narrow; reading both at once would save a step
// that others keys hide anyway, for a sector of memory that most keys don't want.

#pragma once
#include "sail.cuh"

// IPv4. Next hops of W bytes.
template <class W, class First>
struct SailL4 {
    First level16;
    const W* bn24;
    const void* c24;
    const W* n32;
    // Bytes of an element of c24.
    u64 c24_width;

    WS_FN void prepare(const Block& block) const { level16.prepare(block); }

    // Level 24 and 32 of IPv4 have fewer than 2^30 elements.
    static WS_FN u32 in_24(u32 chunk, u32 key) { return chunk * u32(SAIL_CHUNK) | (key >> 8 & 255); }

    template <int N>
    WS_FN void find(const Block& block, const u32* keys, u32* found) const {
        u32 first[N];
        WS_UNROLL
        for (int i = 0; i < N; i++) first[i] = first_16(keys[i]);
        u32 chunks[N];
        level16.template read<N>(block, first, chunks);
        // Next hops plus one; 0 says to go on.
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            found[i] = (chunks[i] ^ u32(SAIL_LEAF)) + 1;
            read_if(~chunks[i] & u32(SAIL_LEAF), bn24 + in_24(chunks[i], keys[i]), found[i]);
        }
        u32 least = found[0];
        WS_UNROLL
        for (int i = 1; i < N; i++) least = found[i] < least ? found[i] : least;
        if (least == 0) longer<N>(keys, chunks, found);
        WS_UNROLL
        for (int i = 0; i < N; i++) found[i] -= 1;
    }

    // Level 32, for the keys that are to go on. Few are: all of it is behind one branch.
    template <int N>
    WS_FN void longer(const u32* keys, u32* chunks, u32* found) const {
        u32 open = 0;
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            if (found[i] == 0) open |= 1u << i;
        }
        gather<N>(c24, u32(c24_width), open, [&](int i) { return in_24(chunks[i], keys[i]); }, chunks);
        auto index = [&](int i) { return chunks[i] * u32(SAIL_CHUNK) | (keys[i] & 255); };
        gather_of<W, N>(n32, open, index, found);
        // Plus one, as those of level 24.
        WS_UNROLL
        for (int i = 0; i < N; i++) found[i] += open >> i & 1;
    }
};

template <class W>
struct SailLLevel {
    const W* next_hops;
    const void* chunks;
    // Bytes of an element of `chunks`.
    u64 width;
};

// IPv6. Next hops of W bytes.
template <class W>
struct SailL6 : InMemory {
    Level16 level16;
    SailLLevel<W> between[SAIL_BETWEEN];
    const W* n128;

    static WS_FN u64 in(u32 chunk, u32 octet) { return u64(chunk) * SAIL_CHUNK | octet; }

    template <int N>
    WS_FN void find(const Block& block, const Address6* keys, u32* found) const {
        u32 first[N];
        WS_UNROLL
        for (int i = 0; i < N; i++) first[i] = first_16(keys[i]);
        u32 chunks[N];
        level16.template read<N>(block, first, chunks);
        u32 open = 0;
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            found[i] = chunks[i] ^ u32(SAIL_LEAF);
            if (!(chunks[i] & SAIL_LEAF)) open |= 1u << i;
        }
        for (u32 at = 0; at < SAIL_BETWEEN; at++) {
            if (open == 0) return;
            const SailLLevel<W>& level = between[at];
            auto index = [&](int i) { return in(chunks[i], bits(keys[i], 16 + 8 * at, 8)); };
            gather_of<W, N>(level.next_hops, open, index, found);
            WS_UNROLL
            for (int i = 0; i < N; i++) {
                // Next hops plus one; 0 says to go on.
                if ((open >> i & 1) && found[i] != 0) {
                    found[i] -= 1;
                    open &= ~(1u << i);
                }
            }
            gather<N>(level.chunks, u32(level.width), open, index, chunks);
        }
        gather_of<W, N>(n128, open, [&](int i) { return in(chunks[i], bits(keys[i], 120, 8)); }, found);
    }
};
