#include "gather.cuh"

WS_LOOKUP(gather_w1, Gather<u8>, Key4, 4, u8, 2)
WS_LOOKUP(gather_w2, Gather<u16>, Key4, 4, u16, 2)
WS_LOOKUP(gather_w4, Gather<u32>, Key4, 4, u32, 2)
