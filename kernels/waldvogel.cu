#include "waldvogel.cuh"

WS_LOOKUPS_V4(waldvogel_v4, Waldvogel<false>, u32, 1)
WS_LOOKUPS_V6(waldvogel_v6, Waldvogel<false>, u32, 4)
WS_LOOKUPS_V6(waldvogel_v6_staged, Waldvogel<true>, u32, 4)
