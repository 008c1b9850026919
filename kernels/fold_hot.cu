#include "fold_hot.cuh"

// Keys ahead are worth it where a block has its multiprocessor to itself and nobody else's keys hide the wait for the next.
typedef FoldHot<u16, u8, HOT_ALL> FoldHotAll;
WS_LOOKUPS_V4_AHEAD(fold_hot_all_w1, FoldHotAll, u8, 2)

#define FOLD_HOT_SLOTS(w, W)                                                                                           \
    typedef FoldHot<u16, W, HOT_SLOTS> FoldHotSlotsW##w;                                                               \
    WS_LOOKUPS_V4(fold_hot_slots_w##w, FoldHotSlotsW##w, W, 2)

FOLD_HOT_SLOTS(1, u8)
FOLD_HOT_SLOTS(2, u16)
FOLD_HOT_SLOTS(4, u32)

// I bytes of a slot, W bytes of an element.
#define FOLD_HOT(i, I, w, W)                                                                                           \
    typedef FoldHot<I, W, HOT_NOTHING> FoldHotI##i##W##w;                                                              \
    WS_LOOKUPS_V4(fold_hot_i##i##_w##w, FoldHotI##i##W##w, W, 2)

FOLD_HOT(2, u16, 1, u8)
FOLD_HOT(2, u16, 2, u16)
FOLD_HOT(2, u16, 4, u32)
FOLD_HOT(4, u32, 1, u8)
FOLD_HOT(4, u32, 2, u16)
FOLD_HOT(4, u32, 4, u32)
