// SAIL_M (`wirespeed-sail`): SAIL_L's levels over the union of all FIBs, each element the end, with an array of next hops that
// has one for each FIB, or the chunk to go on in. What all FIBs share is read first, and last one element of the key's own.
//
//             reads that follow one another                                  where
//     IPv4    2 for a key that level 16 ends, 3 for most others,             level 16 in shared memory, where it is staged;
//             4 with prefixes longer than /24 about it                       of n one FIB's part at a time, where keys have one
//     IPv6    2, and one for each level on
//
// Keys are addresses, for FIB 0, or an address and the id of a FIB (`InFib`), with the ids in a plane of their own. An id
// without a FIB has no route.

#pragma once
#include "sail.cuh"

// A key: an address, and the FIB to look it up in.
template <class A>
struct InFib {
    A address;
    u32 fib;
};

WS_FN u32 address_of(u32 key) { return key; }
WS_FN Address6 address_of(Address6 key) { return key; }
template <class A>
WS_FN A address_of(InFib<A> key) {
    return key.address;
}
WS_FN u32 fib_of(u32) { return 0; }
WS_FN u32 fib_of(Address6) { return 0; }
template <class A>
WS_FN u32 fib_of(InFib<A> key) {
    return key.fib;
}

// Keys of 6 bytes: IPv4 addresses as in `Key4` in the first plane, ids of FIBs of 2 bytes in the second.
struct Key4InFib {
    typedef InFib<u32> Address;
    static constexpr int GROUP = 4;
    static WS_FN void load(const Batch& batch, u64 group, Address* to) {
        u32 addresses[GROUP];
        Key4::load(batch, group, addresses);
        auto fibs = stream<u16, 4>(static_cast<const u16*>(batch.low) + group * GROUP);
        WS_UNROLL
        for (int i = 0; i < GROUP; i++) to[i] = Address{addresses[i], fibs.at[i]};
    }
    static WS_FN Address one(const Batch& batch, u64 at) {
        return Address{Key4::one(batch, at), static_cast<const u16*>(batch.low)[at]};
    }
};

// Keys of 18 or 10 bytes: IPv6 addresses as in `Key16` or `Key8` in the first plane, ids of FIBs of 2 bytes in the second.
template <class Key>
struct Key6InFib {
    typedef InFib<Address6> Address;
    static constexpr int GROUP = Key::GROUP;
    static WS_FN void load(const Batch& batch, u64 group, Address* to) {
        Address6 addresses[GROUP];
        Key::load(batch, group, addresses);
        WS_UNROLL
        for (int i = 0; i < GROUP; i++) {
            to[i] = Address{addresses[i], element(static_cast<const u16*>(batch.low) + group * GROUP + i)};
        }
    }
    static WS_FN Address one(const Batch& batch, u64 at) {
        return Address{Key::one(batch, at), static_cast<const u16*>(batch.low)[at]};
    }
};
typedef Key6InFib<Key16> Key16InFib;
typedef Key6InFib<Key8> Key8InFib;

// The next hops of all FIBs, of W bytes: those of FIB 0 by array, of FIB 1, and so on.
template <class W>
struct SailMNextHops {
    const W* n;
    // From one FIB's next hops to the next.
    u64 arrays;
    // FIBs that there is room for.
    u64 slots;

    // From the arrays of the keys to their next hops.
    template <int N, class Key>
    WS_FN void read(const Key* keys, u32* found) const {
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            u32 array = found[i];
            found[i] = 0;
            read_if(fib_of(keys[i]) < slots, n + (fib_of(keys[i]) * arrays + array), found[i]);
        }
    }
};

template <class W, class First>
struct SailM4 {
    First level16;
    const void* bca24;
    const void* a32;
    // Bytes of an element past level 16.
    u64 width;
    SailMNextHops<W> next_hops;

    WS_FN void prepare(const Block& block) const { level16.prepare(block); }

    template <int N, class Key>
    WS_FN void find(const Block& block, const Key* keys, u32* found) const {
        u32 first[N];
        WS_UNROLL
        for (int i = 0; i < N; i++) first[i] = first_16(address_of(keys[i]));
        level16.template read<N>(block, first, found);
        u32 open = 0;
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            if (!(found[i] & SAIL_LEAF)) open |= 1u << i;
            found[i] &= ~u32(SAIL_LEAF);
        }
        auto index = [&](int i) { return found[i] * SAIL_CHUNK | (address_of(keys[i]) >> 8 & 255); };
        gather<N>(bca24, u32(width), open, index, found);
        const u32 leaf = 1u << (8 * width - 1);
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            if ((open >> i & 1) && (found[i] & leaf)) {
                found[i] ^= leaf;
                open ^= 1u << i;
            }
        }
        if (open != 0) {
            auto index = [&](int i) { return found[i] * SAIL_CHUNK | (address_of(keys[i]) & 255); };
            gather<N>(a32, u32(width), open, index, found);
        }
        next_hops.template read<N>(keys, found);
    }
};

template <class W>
struct SailM6 : InMemory {
    Level16 level16;
    // The levels 24, 32 to 120, and 128.
    const void* deeper[SAIL_BETWEEN + 1];
    // Bytes of an element past level 16.
    u64 width;
    SailMNextHops<W> next_hops;

    template <int N, class Key>
    WS_FN void find(const Block& block, const Key* keys, u32* found) const {
        u32 first[N];
        WS_UNROLL
        for (int i = 0; i < N; i++) first[i] = first_16(address_of(keys[i]));
        level16.template read<N>(block, first, found);
        u32 open = 0;
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            if (!(found[i] & SAIL_LEAF)) open |= 1u << i;
            found[i] &= ~u32(SAIL_LEAF);
        }
        const u32 leaf = 1u << (8 * width - 1);
        for (u32 at = 0; at <= SAIL_BETWEEN && open != 0; at++) {
            auto index = [&](int i) {
                return u64(found[i]) * SAIL_CHUNK | bits(address_of(keys[i]), 16 + 8 * at, 8);
            };
            gather<N>(deeper[at], u32(width), open, index, found);
            // All that is in the last level is an end, without a bit to say so.
            if (at == SAIL_BETWEEN) break;
            WS_UNROLL
            for (int i = 0; i < N; i++) {
                if ((open >> i & 1) && (found[i] & leaf)) {
                    found[i] ^= leaf;
                    open ^= 1u << i;
                }
            }
        }
        next_hops.template read<N>(keys, found);
    }
};
