#include "sail_l.cuh"

// Level 16 staged in shared memory, for large batches.
typedef SailL4<u8, StagedLevel16> SailL4Staged1;
typedef SailL4<u16, StagedLevel16> SailL4Staged2;
typedef SailL4<u32, StagedLevel16> SailL4Staged4;
WS_LOOKUPS_V4(sail_l_v4_staged_w1, SailL4Staged1, u8, 2)
WS_LOOKUPS_V4(sail_l_v4_staged_w2, SailL4Staged2, u16, 2)
WS_LOOKUPS_V4(sail_l_v4_staged_w4, SailL4Staged4, u32, 2)

typedef SailL4<u8, Level16> SailL4InMemory1;
typedef SailL4<u16, Level16> SailL4InMemory2;
typedef SailL4<u32, Level16> SailL4InMemory4;
WS_LOOKUPS_V4(sail_l_v4_w1, SailL4InMemory1, u8, 2)
WS_LOOKUPS_V4(sail_l_v4_w2, SailL4InMemory2, u16, 2)
WS_LOOKUPS_V4(sail_l_v4_w4, SailL4InMemory4, u32, 2)

WS_LOOKUPS_V6(sail_l_v6_w1, SailL6<u8>, u8, 4)
WS_LOOKUPS_V6(sail_l_v6_w2, SailL6<u16>, u16, 4)
WS_LOOKUPS_V6(sail_l_v6_w4, SailL6<u32>, u32, 4)
