// A forest (`wirespeed-forest`): tries of one stride, whose equal nodes are stored once. A lookup goes from chunk to chunk and
// keeps the last route. These kernels look up in table 0.

#pragma once
#include "batch.cuh"
#include "reads.cuh"

// A cell of type C: in its lower half the next hop of a route, plus 1, in its upper half the chunk beneath; 0 for none. An
// address has BITS bits.
template <class C, int BITS>
struct Forest : InMemory {
    const C* cells;
    const C* roots;
    u64 stride;

    template <int N, class Address>
    WS_FN void find(const Block&, const Address* keys, u32* found) const {
        C root = element(roots);
        u32 chunks[N];
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            found[i] = route(root);
            chunks[i] = chunk(root);
        }
        u32 bits_a_step = u32(stride);
        for (u32 from = 0; from < BITS; from += bits_a_step) {
            bool any = false;
            WS_UNROLL
            for (int i = 0; i < N; i++) any |= chunks[i] != 0;
            if (!any) break;
            C read[N];
            WS_UNROLL
            for (int i = 0; i < N; i++) {
                read[i] = 0;
                u64 at = u64(chunks[i]) << bits_a_step | bits(keys[i], from, bits_a_step);
                read_if(chunks[i], cells + at, read[i]);
            }
            WS_UNROLL
            for (int i = 0; i < N; i++) {
                found[i] = route(read[i]) == 0 ? found[i] : route(read[i]);
                chunks[i] = chunk(read[i]);
            }
        }
        WS_UNROLL
        for (int i = 0; i < N; i++) found[i] -= found[i] != 0;
    }

    static WS_FN u32 route(C cell) { return u32(cell & ((C(1) << (4 * sizeof(C))) - 1)); }
    static WS_FN u32 chunk(C cell) { return u32(cell >> (4 * sizeof(C))); }
};
