#include "sail_m.cuh"

// Keys of FIB 0, and keys that name a FIB.
#define SAIL_M_V4(name, Table, Result)                                                                                 \
    WS_LOOKUPS_V4(name, Table, Result, 2)                                                                              \
    WS_LOOKUP(name##_fibs, Table, Key4InFib, 6, Result, 2)
#define SAIL_M_V6(name, Table, Result)                                                                                 \
    WS_LOOKUPS_V6(name, Table, Result, 4)                                                                              \
    WS_LOOKUP(name##_fibs, Table, Key16InFib, 18, Result, 4)                                                           \
    WS_LOOKUP(name##_fibs, Table, Key8InFib, 10, Result, 2)

// Level 16 staged in shared memory, for large batches.
typedef SailM4<u8, StagedLevel16> SailM4Staged1;
typedef SailM4<u16, StagedLevel16> SailM4Staged2;
typedef SailM4<u32, StagedLevel16> SailM4Staged4;
SAIL_M_V4(sail_m_v4_staged_w1, SailM4Staged1, u8)
SAIL_M_V4(sail_m_v4_staged_w2, SailM4Staged2, u16)
SAIL_M_V4(sail_m_v4_staged_w4, SailM4Staged4, u32)

typedef SailM4<u8, Level16> SailM4InMemory1;
typedef SailM4<u16, Level16> SailM4InMemory2;
typedef SailM4<u32, Level16> SailM4InMemory4;
SAIL_M_V4(sail_m_v4_w1, SailM4InMemory1, u8)
SAIL_M_V4(sail_m_v4_w2, SailM4InMemory2, u16)
SAIL_M_V4(sail_m_v4_w4, SailM4InMemory4, u32)

SAIL_M_V6(sail_m_v6_w1, SailM6<u8>, u8)
SAIL_M_V6(sail_m_v6_w2, SailM6<u16>, u16)
SAIL_M_V6(sail_m_v6_w4, SailM6<u32>, u32)
