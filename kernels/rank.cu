#include "rank.cuh"

// I bytes of a chunk id, W bytes of a run.
#define RANK(name, I, W, STAGED)                                                                                       \
    typedef Rank<I, W, STAGED> name##_Table;                                                                           \
    WS_LOOKUPS_V4(name, name##_Table, W, 2)

RANK(rank_i2_w2, u16, u16, false)
RANK(rank_i2_w4, u16, u32, false)
RANK(rank_i4_w2, u32, u16, false)
RANK(rank_i4_w4, u32, u32, false)
RANK(rank_staged_i2_w2, u16, u16, true)
RANK(rank_staged_i2_w4, u16, u32, true)
