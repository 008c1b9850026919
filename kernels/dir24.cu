#include "dir24.cuh"

WS_LOOKUPS_V4(dir24_w1, Dir24<u8>, u8, 2)
WS_LOOKUPS_V4(dir24_w2, Dir24<u16>, u16, 2)
WS_LOOKUPS_V4(dir24_w4, Dir24<u32>, u32, 2)
