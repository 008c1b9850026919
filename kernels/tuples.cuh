// A batch of tuples on the device: header fields in, numbers of rules out, in order. Shared by all engines of rules.
//
// Tuples lie as structures of arrays (GSwitch, Algorithm 3), 32 at a time, so that a warp reads words that follow each other and
// the first so many tuples of a batch are a batch too (`crates/gpu/src/classify/form.rs`):
//
//     first part    groups of 32 tuples: word 0 of each, word 1 of each, … every whole word; the last group filled up
//     second part   what is left of each, a byte, where tuples aren't of whole words
//
// which are 13 bytes a tuple of IPv4, 37 of IPv6, 36 of OpenFlow, 64 of OpenFlow 1.3, and no padding on the bus.

#pragma once
#include "batch.cuh"

// Tuples of a group.
WS_CONSTANT(tuples, TUPLES_GROUP, 32)

// A tuple of so many whole words, and a byte, the highest of one more word, where there is a tail.
template <int WHOLE, bool TAIL>
struct Tuple {
    static constexpr int WORDS = WHOLE + (TAIL ? 1 : 0);
    u32 at[WORDS];

    WS_FN void load(const Batch& batch, u64 number) {
        u64 group = number / TUPLES_GROUP;
        auto* words = static_cast<const u32*>(batch.keys) + group * (WHOLE * TUPLES_GROUP) + number % TUPLES_GROUP;
        WS_UNROLL
        for (int i = 0; i < WHOLE; i++) at[i] = words[i * TUPLES_GROUP];
        if constexpr (TAIL) at[WHOLE] = u32(static_cast<const u8*>(batch.low)[number]) << 24;
    }
};

typedef Tuple<3, true> Tuple4;
typedef Tuple<9, true> Tuple10;
typedef Tuple<9, false> Tuple9;
typedef Tuple<16, false> Tuple16;

// Writes the number of a rule, as wide as the batch's are; one that is too large for that as the largest that there is, which tells
// whoever reads it.
WS_FN void give_number(const Batch& batch, u64 tuple, u32 number) {
    if (batch.result_bytes == 1) {
        static_cast<u8*>(batch.results)[tuple] = u8(number < 0xff ? number : 0xff);
    } else if (batch.result_bytes == 2) {
        static_cast<u16*>(batch.results)[tuple] = u16(number < 0xffff ? number : 0xffff);
    } else {
        static_cast<u32*>(batch.results)[tuple] = number;
    }
}

// A number that was written.
WS_FN u32 given_number(const Batch& batch, u64 tuple) {
    if (batch.result_bytes == 1) return static_cast<const u8*>(batch.results)[tuple];
    if (batch.result_bytes == 2) return static_cast<const u16*>(batch.results)[tuple];
    return static_cast<const u32*>(batch.results)[tuple];
}

// Four elements of a table, 16 bytes at once.
WS_FN Vector<u32, 4> four_elements(const u32* at) {
#if WS_GPU
    auto v = __ldg(reinterpret_cast<const uint4*>(at));
    return Vector<u32, 4>{{v.x, v.y, v.z, v.w}};
#else
    return *reinterpret_cast<const Vector<u32, 4>*>(at);
#endif
}

// A product of 32 bits times 32 to a sum: said so, as a factor that was widened ahead of the loop makes it one of 64 bits.
WS_FN u64 add_product(u64 sum, u32 one, u32 other) {
#if WS_GPU
    u32 low = u32(sum), high = u32(sum >> 32);
    asm("mad.lo.cc.u32 %0, %2, %3, %0;\n\tmadc.hi.u32 %1, %2, %3, %1;" : "+r"(low), "+r"(high) : "r"(one), "r"(other));
    return u64(high) << 32 | low;
#else
    return sum + u64(one) * other;
#endif
}

// The low half of a product, in three operations.
WS_FN u64 low_product(u64 one, u64 other) {
#if WS_GPU
    u32 low, high;
    asm("{\n\t.reg .u64 wide;\n\tmul.wide.u32 wide, %2, %4;\n\tmov.b64 {%0, %1}, wide;\n\t"
        "mad.lo.u32 %1, %3, %4, %1;\n\tmad.lo.u32 %1, %2, %5, %1;\n\t}"
        : "=&r"(low), "=&r"(high) : "r"(u32(one)), "r"(u32(one >> 32)), "r"(u32(other)), "r"(u32(other >> 32)));
    return u64(high) << 32 | low;
#else
    return one * other;
#endif
}

// The entry points of a table of rules, one for each kind of tuple: NAME_t4, NAME_t10, NAME_t9, and NAME_t16 of tables that take it. A table is a plain struct with
//     look_up<Tuple>(block, batch)    a whole batch by a whole row of blocks
#define WS_TUPLES_OF(name, Table, Tuple, words, threads, blocks)                                                       \
    WS_KERNEL_HELD(name##_t##words, threads, blocks, Batches, batches, Table, table) {                                 \
        const Batch& batch = batches.of_row(block);                                                                    \
        table.template look_up<Tuple>(block, batch);                                                                   \
        announce_end(block, batch);                                                                                    \
    }
#define WS_TUPLES(name, Table, threads, blocks)                                                                        \
    WS_TUPLES_OF(name, Table, Tuple4, 4, threads, blocks)                                                              \
    WS_TUPLES_OF(name, Table, Tuple10, 10, threads, blocks)                                                            \
    WS_TUPLES_OF(name, Table, Tuple9, 9, threads, blocks)
