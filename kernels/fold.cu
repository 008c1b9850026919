#include "fold.cuh"

// I bytes of the number of a chunk, W bytes of an element.
#define FOLD_V4(i, I, w, W)                                                                                            \
    typedef FoldV4<I, W> FoldV4I##i##W##w;                                                                             \
    WS_LOOKUPS_V4(fold_v4_i##i##_w##w, FoldV4I##i##W##w, W, 2)

FOLD_V4(2, u16, 1, u8)
FOLD_V4(2, u16, 2, u16)
FOLD_V4(2, u16, 4, u32)
FOLD_V4(4, u32, 1, u8)
FOLD_V4(4, u32, 2, u16)
FOLD_V4(4, u32, 4, u32)

#define FOLD_V6(name, W, STAGED)                                                                                       \
    typedef FoldV6<W, STAGED> name##_Table;                                                                            \
    WS_LOOKUPS_V6(name, name##_Table, W, 4)

FOLD_V6(fold_v6_w2, u16, false)
FOLD_V6(fold_v6_w4, u32, false)
FOLD_V6(fold_v6_staged_w2, u16, true)
