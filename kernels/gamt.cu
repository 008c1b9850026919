#include "gamt.cuh"

WS_LOOKUPS_V4(gamt_v4_w1, Gamt4<u8>, u8, 2)
WS_LOOKUPS_V4(gamt_v4_w2, Gamt4<u16>, u16, 2)
WS_LOOKUPS_V4(gamt_v4_w4, Gamt4<u32>, u32, 2)

// Eight keys under way in a thread; of the widest four, as the registers go.
#define GAMT_V6(name, Table, Result)                                                                                   \
    WS_LOOKUP(name, Table, Key16, 16, Result, 4)                                                                       \
    WS_LOOKUP(name, Table, Key8, 8, Result, 4)                                                                         \
    WS_LOOKUP(name, Table, Key6, 6, Result, 2)

GAMT_V6(gamt_v6_w1, Gamt6<u8>, u8)
GAMT_V6(gamt_v6_w2, Gamt6<u16>, u16)
GAMT_V6(gamt_v6_w4, Gamt6<u32>, u32)
