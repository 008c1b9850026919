// Level 16 of SAIL_L and SAIL_M (`wirespeed-sail`), which all lookups begin with: 2^16 elements of 4 bytes, either the end of
// a lookup or a chunk of the next level.
//
// In memory its 256 KB are more than L1 has beside what else is read, and more than a block's shared memory. Staged it is
// narrowed to 2 bytes an element, 128 KB, which leaves L1 the rest to be the next level's:
//
//     0 … chunks-1              the chunk
//     chunks … 0xfffe           the end, counted from `chunks`
//     0xffff                    neither fits: look into memory
//
// So every table can be staged, whatever a patch writes, and the usual one has no 0xffff: the real IPv4 table of 2026 has
// room for some 29,800 chunks, which leaves 35,700 values for next hops.

#pragma once
#include "batch.cuh"
#include "reads.cuh"

WS_CONSTANT(sail, SAIL_FIRST, 1 << 16)
WS_CONSTANT(sail, SAIL_CHUNK, 256)
// Set in an element of level 16 that ends a lookup.
WS_CONSTANT(sail, SAIL_LEAF, 1u << 31)
// Levels of IPv6 past 16 and before 128.
WS_CONSTANT(sail, SAIL_BETWEEN, 13)

struct Level16 {
    const u32* elements;
    // Chunks of the next level, as many as there is room for. This is what a patch can't change.
    u64 chunks;

    WS_FN void prepare(const Block&) const {}

    // The elements of the first 16 bits of the keys.
    template <int N>
    WS_FN void read(const Block&, const u32* first_16, u32* found) const {
        WS_UNROLL
        for (int i = 0; i < N; i++) found[i] = element(elements + first_16[i]);
    }
};

struct StagedLevel16 {
    const u32* elements;
    u64 chunks;

    static constexpr u32 IN_MEMORY = 0xffff;

    // The first value that ends a lookup.
    WS_FN u32 base() const { return chunks < IN_MEMORY ? u32(chunks) : IN_MEMORY; }

    WS_FN u16 narrow(u32 element) const {
        u32 value = element;
        // At most 2^31 - 1 and 0xffff: no carry.
        if (element & SAIL_LEAF) {
            value = (element ^ u32(SAIL_LEAF)) + base();
        } else if (element >= base()) {
            value = IN_MEMORY;
        }
        return u16(value < IN_MEMORY ? value : IN_MEMORY);
    }

    // Stages the level: 128 KB.
    WS_FN void prepare(const Block& block) const {
        block.each([&](u32 thread) {
            auto* to = block.shared<Vector<u16, 8>>();
            for (u32 at = thread; at < SAIL_FIRST / 8; at += block.threads()) {
                auto low = stream<u32, 4>(elements + at * 8), high = stream<u32, 4>(elements + at * 8 + 4);
                Vector<u16, 8> v;
                WS_UNROLL
                for (int i = 0; i < 4; i++) {
                    v.at[i] = narrow(low.at[i]);
                    v.at[i + 4] = narrow(high.at[i]);
                }
                to[at] = v;
            }
        });
    }

    template <int N>
    WS_FN void read(const Block& block, const u32* first_16, u32* found) const {
        const u16* staged = block.shared<u16>();
        WS_UNROLL
        for (int i = 0; i < N; i++) found[i] = staged[first_16[i]];
        u32 most = 0;
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            most = found[i] > most ? found[i] : most;
        }
        u32 in_memory = 0;
        if (most == IN_MEMORY) {
            WS_UNROLL
            for (int i = 0; i < N; i++) {
                if (found[i] == IN_MEMORY) in_memory |= 1u << i;
            }
        }
        const u32 first_end = base();
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            found[i] = found[i] >= first_end ? (found[i] - first_end) | u32(SAIL_LEAF) : found[i];
        }
        if (in_memory != 0) gather_of<u32, N>(elements, in_memory, [&](int i) { return first_16[i]; }, found);
    }
};

WS_FN u32 first_16(u32 address) { return address >> 16; }
WS_FN u32 first_16(Address6 address) { return u32(address.high >> 48); }
