#include "sail_b.cuh"

// W bytes of a next hop, P bytes of an element of the pivot level and of a result.
#define SAIL_B(w, W, p, P)                                                                                             \
    typedef SailB<W, P> SailBW##w##P##p;                                                                               \
    WS_LOOKUPS_V4(sail_b_w##w##_p##p, SailBW##w##P##p, P, 1)

SAIL_B(1, u8, 1, u8)
SAIL_B(1, u8, 2, u16)
SAIL_B(1, u8, 4, u32)
SAIL_B(2, u16, 2, u16)
SAIL_B(2, u16, 4, u32)
SAIL_B(4, u32, 4, u32)
