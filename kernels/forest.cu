#include "forest.cuh"

#define FOREST(cells, C, Result)                                                                                       \
    typedef Forest<C, 32> Forest4_##cells;                                                                             \
    typedef Forest<C, 128> Forest6_##cells;                                                                            \
    WS_LOOKUPS_V4(forest_v4_##cells, Forest4_##cells, Result, 2)                                                       \
    WS_LOOKUPS_V6(forest_v6_##cells, Forest6_##cells, Result, 4)

FOREST(narrow, u32, u16)
FOREST(wide, u64, u32)
