// Batches on the device: keys in, results out, in order. Shared by all lookups, whatever their keys.
//
// A kernel is made of three parts that know nothing of each other: how keys lie (`Key`), how wide a result is, and a table
// that looks up N keys at once (`find`), each step for all of them before the next, so that N reads are
// under way in each thread.
//
//     group   of Key::GROUP keys: at most 16 bytes of a plane or of results, one load for each plane and one store
//     thread  UNDER_WAY groups, a block's width apart, so that loads and stores of a warp are of consecutive bytes
//
// Keys are in one plane or two (`Key`), results in one. Where an array doesn't start on 16 bytes, as in the middle of
// somebody's buffer, keys go one by one.

#pragma once
#include "wirespeed.cuh"

struct Batch {
    // The keys, or their first plane.
    const void* keys;
    // Their second plane, where there is one.
    const void* low;
    void* results;
    u64 count;
    // A word for each block of the row, where it puts `mark` when it has read all its keys and the table, and its results can be
    // seen; null where nobody looks.
    u32* done;
    u32 mark;
    // Bytes of a result. Most kernels have it in their table's type, or in the table itself.
    u32 result_bytes;
};

// The batches of a launch: each row of blocks looks up one.
struct Batches {
    static constexpr int MOST = 8;
    Batch of[MOST];
    WS_FN const Batch& of_row(const Block& block) const { return of[block.row()]; }
};

// An IPv4 key of 4 bytes: the address as a number.
struct Key4 {
    typedef u32 Address;
    static constexpr int GROUP = 4;
    typedef Vector<u32, 4> Packed;
    static WS_FN Packed fetch(const Batch& batch, u64 group) {
        return stream<u32, 4>(static_cast<const u32*>(batch.keys) + group * GROUP);
    }
    static WS_FN void unpack(const Packed& v, Address* to) {
        WS_UNROLL
        for (int i = 0; i < GROUP; i++) to[i] = v.at[i];
    }
    static WS_FN void load(const Batch& batch, u64 group, Address* to) { unpack(fetch(batch, group), to); }
    static WS_FN Address one(const Batch& batch, u64 at) { return static_cast<const u32*>(batch.keys)[at]; }
};

// An IPv4 key of 3 bytes, for tables with no prefix longer than 24 bits: the first two as a number in the first plane, the
// third in the second. Groups of eight are loaded at once where their results are stored at once, too (`finish_groups`).
template <class Result>
struct Key3 {
    typedef u32 Address;
    static constexpr int GROUP = sizeof(Result) > 2 ? 4 : 8;
    // The groups that have the keys of so many groups of four.
    static WS_FN constexpr int groups_of(int fours) { return (4 * fours + GROUP - 1) / GROUP; }
    struct Packed {
        Vector<u16, GROUP> high;
        Vector<u8, GROUP> low;
    };
    static WS_FN Packed fetch(const Batch& batch, u64 group) {
        return Packed{stream<u16, GROUP>(static_cast<const u16*>(batch.keys) + group * GROUP),
                      stream<u8, GROUP>(static_cast<const u8*>(batch.low) + group * GROUP)};
    }
    static WS_FN void unpack(const Packed& v, Address* to) {
        WS_UNROLL
        for (int i = 0; i < GROUP; i++) to[i] = u32(v.high.at[i]) << 16 | u32(v.low.at[i]) << 8;
    }
    static WS_FN void load(const Batch& batch, u64 group, Address* to) { unpack(fetch(batch, group), to); }
    static WS_FN Address one(const Batch& batch, u64 at) {
        return u32(static_cast<const u16*>(batch.keys)[at]) << 16 | u32(static_cast<const u8*>(batch.low)[at]) << 8;
    }
};

// An IPv6 address: its first 64 bits and its last.
struct Address6 {
    u64 high, low;
};

// Bits `from` to `from + count` of an address, 1 to 32 of them, as a number. They may lie across the middle.
WS_FN u32 bits(Address6 address, u32 from, u32 count) {
    u64 top;
    if (from >= 64) {
        top = address.low << (from - 64);
    } else {
        top = address.high << from;
        if (from != 0) top |= address.low >> (64 - from);
    }
    return u32(top >> (64 - count));
}
WS_FN u32 bits(u32 address, u32 from, u32 count) {
    return (address << from) >> (32 - count);
}

// An IPv6 key of 16 bytes: the address as a number, little-endian.
struct Key16 {
    typedef Address6 Address;
    static constexpr int GROUP = 1;
    static WS_FN void load(const Batch& batch, u64 group, Address* to) { to[0] = one(batch, group); }
    static WS_FN Address one(const Batch& batch, u64 at) {
        auto v = stream<u64, 2>(static_cast<const u64*>(batch.keys) + 2 * at);
        return Address6{v.at[1], v.at[0]};
    }
};

// An IPv6 key of 8 bytes, for tables with no prefix longer than 64 bits.
struct Key8 {
    typedef Address6 Address;
    static constexpr int GROUP = 2;
    static WS_FN void load(const Batch& batch, u64 group, Address* to) {
        auto v = stream<u64, 2>(static_cast<const u64*>(batch.keys) + group * GROUP);
        WS_UNROLL
        for (int i = 0; i < GROUP; i++) to[i] = Address6{v.at[i], 0};
    }
    static WS_FN Address one(const Batch& batch, u64 at) {
        return Address6{static_cast<const u64*>(batch.keys)[at], 0};
    }
};

// An IPv6 key of 6 bytes, for tables with no prefix longer than 48 bits: the first four as a number in the first plane, the
// last two in the second.
struct Key6 {
    typedef Address6 Address;
    static constexpr int GROUP = 4;
    static WS_FN Address join(u32 high, u16 low) { return Address6{u64(high) << 32 | u64(low) << 16, 0}; }
    static WS_FN void load(const Batch& batch, u64 group, Address* to) {
        auto high = stream<u32, 4>(static_cast<const u32*>(batch.keys) + group * GROUP);
        auto low = stream<u16, 4>(static_cast<const u16*>(batch.low) + group * GROUP);
        WS_UNROLL
        for (int i = 0; i < GROUP; i++) to[i] = join(high.at[i], low.at[i]);
    }
    static WS_FN Address one(const Batch& batch, u64 at) {
        return join(static_cast<const u32*>(batch.keys)[at], static_cast<const u16*>(batch.low)[at]);
    }
};

WS_FN bool is_aligned(const void* at) {
    return (reinterpret_cast<u64>(at) & 15) == 0;
}

// Looks up the keys of groups `first`, `first + apart` and so on, COUNT of them.
template <class Key, class Result, int COUNT, class Table>
WS_FN void finish_groups(const Block& block, const Batch& batch, u64 first, u32 apart, const Table& table,
                         const typename Key::Address* keys) {
    constexpr int G = Key::GROUP;
    // With two stores for a group, each store of a warp would leave gaps. Over the bus, partly written lines are slow: 2 G results
    // a second of 4 bytes on an H200, where whole lines go at 10 G.
    static_assert(G * sizeof(Result) <= 16, "one store for a group");
    u32 found[COUNT * G];
    table.template find<COUNT * G>(block, keys, found);
    WS_UNROLL
    for (int i = 0; i < COUNT; i++) {
        auto* to = static_cast<Result*>(batch.results) + (first + u64(i) * apart) * G;
        Vector<Result, G> v;
        WS_UNROLL
        for (int j = 0; j < G; j++) v.at[j] = Result(found[i * G + j]);
        store(to, v);
    }
}

template <class Key, class Result, int COUNT, class Table>
WS_FN void look_up_groups(const Block& block, const Batch& batch, u64 first, u32 apart, const Table& table) {
    typename Key::Address keys[COUNT * Key::GROUP];
    WS_UNROLL
    for (int i = 0; i < COUNT; i++) Key::load(batch, first + u64(i) * apart, keys + i * Key::GROUP);
    finish_groups<Key, Result, COUNT>(block, batch, first, apart, table, keys);
}

// Whole tiles, from `first` on: the keys of the next one are on their way while those of the present one are looked up. The
// first group that is left.
template <class Key, class Result, int UNDER_WAY, class Table>
WS_FN u64 look_up_ahead(const Block& block, const Batch& batch, u64 first, u64 groups, u32 thread, const Table& table) {
    u32 apart = block.threads();
    u64 tile = u64(UNDER_WAY) * apart, step = block.count() * tile;
    if (first + tile > groups) return first;
    typename Key::Packed next[UNDER_WAY];
    WS_UNROLL
    for (int i = 0; i < UNDER_WAY; i++) next[i] = Key::fetch(batch, first + thread + i * apart);
    for (; first + tile <= groups; first += step) {
        typename Key::Address keys[UNDER_WAY * Key::GROUP];
        WS_UNROLL
        for (int i = 0; i < UNDER_WAY; i++) Key::unpack(next[i], keys + i * Key::GROUP);
        if (first + step + tile <= groups) {
            WS_UNROLL
            for (int i = 0; i < UNDER_WAY; i++) next[i] = Key::fetch(batch, first + step + thread + i * apart);
        }
        finish_groups<Key, Result, UNDER_WAY>(block, batch, first + thread, apart, table, keys);
    }
    return first;
}

// Says that the block is done with the batch. All blocks of a row have said so sooner than an event comes: that comes only after the
// grid's end, a flush of all that it wrote and a write of its own, 1 to 2 microseconds, a tenth of what a lone small batch takes.
// And a batch need not wait for others of the launch.
WS_FN void announce_end(const Block& block, const Batch& batch) {
    if (batch.done == nullptr) return;
    block.barrier();
    block.each([&](u32 thread) {
        if (thread == 0) announce(batch.done + block.index(), batch.mark);
    });
}

// A whole batch by a whole row of blocks. With AHEAD a thread loads its next keys ahead of the lookups of the present ones.
template <class Key, class Result, int UNDER_WAY, bool AHEAD = false, class Table>
WS_FN void look_up(const Block& block, const Batch& batch, const Table& table) {
    constexpr int G = Key::GROUP;
    table.prepare(block);
    block.barrier();
    bool aligned = is_aligned(batch.keys) && is_aligned(batch.low) && is_aligned(batch.results);
    u64 groups = aligned ? batch.count / G : 0;
    block.each([&](u32 thread) {
        u64 tile = u64(UNDER_WAY) * block.threads();
        u64 first = block.index() * tile;
        if constexpr (AHEAD) first = look_up_ahead<Key, Result, UNDER_WAY>(block, batch, first, groups, thread, table);
        for (; first < groups; first += block.count() * tile) {
            if (!AHEAD && first + tile <= groups) {
                look_up_groups<Key, Result, UNDER_WAY>(block, batch, first + thread, block.threads(), table);
            } else {
                for (u64 group = first + thread; group < groups; group += block.threads()) {
                    look_up_groups<Key, Result, 1>(block, batch, group, 0, table);
                }
            }
        }
        u64 all = u64(block.count()) * block.threads();
        for (u64 at = groups * G + u64(block.index()) * block.threads() + thread; at < batch.count; at += all) {
            typename Key::Address key[1] = {Key::one(batch, at)};
            u32 found[1];
            table.template find<1>(block, key, found);
            static_cast<Result*>(batch.results)[at] = Result(found[0]);
        }
    });
    announce_end(block, batch);
}

// A table that keeps nothing in shared memory.
struct InMemory {
    WS_FN void prepare(const Block&) const {}
};

// The entry points of a table, one for each kind of key: NAME_kKEYBYTES. A table is a plain struct with
//     prepare(block)                   stages what belongs into shared memory; a barrier follows
//     find<N>(block, keys, found)      looks up N keys
// and results are as wide as the widest it can find.
#define WS_LOOKUP_BY(name, Table, Key, key, Result, ...)                                                               \
    WS_KERNEL_HELD(name##_k##key, 1024, 1, Batches, batches, Table, table) {                                           \
        look_up<Key, Result, __VA_ARGS__>(block, batches.of_row(block), table);                                        \
    }
#define WS_LOOKUP(name, Table, Key, key, Result, under_way) WS_LOOKUP_BY(name, Table, Key, key, Result, under_way)
// The last argument: groups of four keys under way in a thread.
#define WS_LOOKUPS_V4(name, Table, Result, groups)                                                                     \
    WS_LOOKUP(name, Table, Key4, 4, Result, groups)                                                                    \
    WS_LOOKUP(name, Table, Key3<Result>, 3, Result, Key3<Result>::groups_of(groups))
// The same with the next keys ahead.
#define WS_LOOKUPS_V4_AHEAD(name, Table, Result, groups)                                                               \
    WS_LOOKUP_BY(name, Table, Key4, 4, Result, groups, true)                                                           \
    WS_LOOKUP_BY(name, Table, Key3<Result>, 3, Result, Key3<Result>::groups_of(groups), true)
// The last argument: keys under way in a thread.
#define WS_LOOKUPS_V6(name, Table, Result, keys)                                                                       \
    WS_LOOKUP(name, Table, Key16, 16, Result, keys)                                                                    \
    WS_LOOKUP(name, Table, Key8, 8, Result, ((keys) + 1) / 2)                                                          \
    WS_LOOKUP(name, Table, Key6, 6, Result, ((keys) + 3) / 4)
