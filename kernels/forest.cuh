// A forest (`wirespeed-forest`): tries of one stride, whose equal nodes are stored once. A lookup goes from chunk to chunk and
// keeps the last route. These kernels look up in table 0.

#pragma once
#include "batch.cuh"
#include "reads.cuh"

// A cell of type C: in its lower half the next hop of a route, plus 1, in its upper half the number of the chunk beneath, or of
// the leaf, with the highest bit set; 0 for none. A leaf has routes only. An address has BITS bits.
template <class C, int BITS>
struct Forest : InMemory {
    const C* cells;
    // Elements of 1, 2 or 4 bytes.
    const void* leaves;
    const C* roots;
    u32 stride;
    u32 leaf_bytes;

    template <int N, class Address>
    WS_FN void find(const Block&, const Address* keys, u32* found) const {
        constexpr u32 LEAF = 1u << (4 * sizeof(C) - 1);
        C root = element(roots);
        u32 links[N];
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            found[i] = route(root);
            links[i] = link(root);
        }
        // Elements of leaves that end a lookup.
        u32 last[N], ends = 0;
        WS_UNROLL
        for (int i = 0; i < N; i++) last[i] = 0;
        for (u32 from = 0; from < BITS; from += stride) {
            bool any = false;
            WS_UNROLL
            for (int i = 0; i < N; i++) any |= links[i] != 0;
            if (!any) break;
            C read[N];
            WS_UNROLL
            for (int i = 0; i < N; i++) {
                read[i] = 0;
                // There are fewer than 2^30 elements.
                u32 at = (links[i] & ~LEAF) << stride | bits(keys[i], from, stride);
                bool is_leaf = (links[i] & LEAF) != 0;
                last[i] = is_leaf ? at : last[i];
                if (is_leaf) ends |= 1u << i;
                read_if(links[i] != 0 && !is_leaf, cells + at, read[i]);
            }
            WS_UNROLL
            for (int i = 0; i < N; i++) {
                found[i] = route(read[i]) == 0 ? found[i] : route(read[i]);
                links[i] = link(read[i]);
            }
        }
        u32 routes[N];
        WS_UNROLL
        for (int i = 0; i < N; i++) routes[i] = 0;
        gather<N>(leaves, leaf_bytes, ends, [&](int i) { return last[i]; }, routes);
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            found[i] = routes[i] == 0 ? found[i] : routes[i];
            found[i] -= found[i] != 0;
        }
    }

    static WS_FN u32 route(C cell) { return u32(cell & ((C(1) << (4 * sizeof(C))) - 1)); }
    static WS_FN u32 link(C cell) { return u32(cell >> (4 * sizeof(C))); }
};
