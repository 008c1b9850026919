// Binary search on prefix lengths (`wirespeed-waldvogel`), for IPv4 and IPv6.
//
//     value ← root, chunk
//     while the value says to try a length:  look for the first bits of the key, that many, where they belong
//         found:      value ← its value
//         not found:  value ← misses[its record]
//     the value is the next hop
//
// All keys of a thread take a step before the next: the pilots of their groups, the slots, what to do after a try in vain. A
// key that is done waits for the others. Up to 2^19 slots the pilots, 128 KB of them, fit in shared memory; a second kernel
// for IPv6 has them there, and a try is one read of memory instead of two.

#pragma once
#include "batch.cuh"

WS_CONSTANT(waldvogel, WALDVOGEL_ROOT_BITS, 16)
WS_CONSTANT(waldvogel, WALDVOGEL_CHUNK_BITS, 8)
// Most lengths that a lookup tries.
WS_CONSTANT(waldvogel, WALDVOGEL_MOST_TRIES, 16)
// A value from here on is not a next hop; the bits of its number; the length that says that the rope has it.
WS_CONSTANT(waldvogel, WALDVOGEL_OPEN, 1u << 31)
WS_CONSTANT(waldvogel, WALDVOGEL_NUMBER_BITS, 25)
WS_CONSTANT(waldvogel, WALDVOGEL_WIDE_LENGTH, 0x3f)
// Records of a piece, which are the lengths of a rope.
WS_CONSTANT(waldvogel, WALDVOGEL_STEPS, 8)
// Bits of the hash of a word, and how far it is folded.
WS_CONSTANT(waldvogel, WALDVOGEL_HASH_BITS, 49)
WS_CONSTANT(waldvogel, WALDVOGEL_FOLD, 25)
// Words and keys of a bucket; the word where values begin, two in each; where in the last word lengths begin, and the number of
// keys that are elsewhere.
WS_CONSTANT(waldvogel, WALDVOGEL_BUCKET_WORDS, 8)
WS_CONSTANT(waldvogel, WALDVOGEL_BUCKET_SLOTS, 3)
WS_CONSTANT(waldvogel, WALDVOGEL_BUCKET_VALUES, 6)
WS_CONSTANT(waldvogel, WALDVOGEL_BUCKET_LENGTHS, 32)
WS_CONSTANT(waldvogel, WALDVOGEL_BUCKET_SPILLED, 56)

// The first 64 bits of an address and the others; an IPv4 address is at the top.
WS_FN Address6 halves(u32 address) {
    return Address6{u64(address) << 32, 0};
}
WS_FN Address6 halves(Address6 address) {
    return address;
}

// Whether a prefix may be longer than a word holds.
constexpr WS_FN bool may_be_wide(u32) {
    return false;
}
constexpr WS_FN bool may_be_wide(Address6) {
    return true;
}

// STAGED has the pilots in shared memory.
template <bool STAGED>
struct Waldvogel {
    const u32* root;
    const u32* chunks;
    const u64* ropes;
    const u32* misses;
    const u64* slots;
    const u8* pilots;
    const u64* wide;
    u64 seed[4];
    // Bits of the number of a slot.
    u32 slot_bits;
    // Buckets of keys that are longer than a word.
    u32 buckets;

    static constexpr u32 OPEN = u32(WALDVOGEL_OPEN);
    // From here on a value has a length; below and open it is a chunk.
    static constexpr u32 TRY = OPEN | 1u << WALDVOGEL_NUMBER_BITS;
    // From here on the rope has it.
    static constexpr u32 TRY_WIDE = OPEN | u32(WALDVOGEL_WIDE_LENGTH << WALDVOGEL_NUMBER_BITS);
    static constexpr u32 BELOW = 64 - u32(WALDVOGEL_HASH_BITS);

    WS_FN void prepare(const Block& block) const {
        if constexpr (STAGED) stage(block, block.template shared<u8>(), pilots, 1u << (slot_bits - 2));
    }

    template <int N, class Address>
    WS_FN void find(const Block& block, const Address* keys, u32* found) const {
        WS_UNROLL
        for (int i = 0; i < N; i++) found[i] = element(root + bits(keys[i], 0, u32(WALDVOGEL_ROOT_BITS)));
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            u32 octet = bits(keys[i], u32(WALDVOGEL_ROOT_BITS), u32(WALDVOGEL_CHUNK_BITS));
            u32 at = number(found[i]) << WALDVOGEL_CHUNK_BITS | octet;
            if (found[i] >= OPEN && found[i] < TRY) found[i] = element(chunks + at);
        }
        // Tables that we made end before.
        for (u32 tries = 0; tries <= WALDVOGEL_MOST_TRIES; tries++) {
            bool any = false;
            WS_UNROLL
            for (int i = 0; i < N; i++) any |= found[i] >= OPEN;
            if (!any) return;
            step<N>(block, keys, found);
        }
        WS_UNROLL
        for (int i = 0; i < N; i++) found[i] = found[i] >= OPEN ? 0 : found[i];
    }

    // A try of each key that is not done.
    template <int N, class Address>
    WS_FN void step(const Block& block, const Address* keys, u32* found) const {
        u32 rests[N], at[N];
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            u64 hash = hash_of(word_of(halves(keys[i]).high, found[i] << 1 >> (WALDVOGEL_NUMBER_BITS + 1)));
            // The last 31 bits of the hash and a one.
            rests[i] = u32(hash >> (BELOW - 1)) | 1;
            at[i] = u32(hash >> 32) >> (32 - slot_bits);
            u32 group = u32(hash << slot_bits >> (66 - slot_bits));
            u32 pilot = 0;
            if constexpr (STAGED) {
                pilot = block.template shared<u8>()[group];
            } else {
                if (found[i] >= OPEN) pilot = element(pilots + group);
            }
            at[i] = (at[i] + pilot * rests[i]) & ((1u << slot_bits) - 1);
        }
        u64 words[N];
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            words[i] = 0;
            if (found[i] >= OPEN && found[i] < TRY_WIDE) words[i] = element(slots + at[i]);
        }
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            if (found[i] < OPEN) continue;
            if constexpr (may_be_wide(Address())) {
                if (found[i] >= TRY_WIDE) {
                    found[i] = try_wide(halves(keys[i]), number(found[i]));
                    continue;
                }
            }
            bool is_here = u32(words[i] >> 32) == rests[i];
            found[i] = is_here ? u32(words[i]) : element(misses + number(found[i]));
        }
    }

    // The record or the chunk of a value.
    static WS_FN u32 number(u32 value) { return value % (1u << WALDVOGEL_NUMBER_BITS); }

    // The first `length` bits, then a one, then zeros; `length` below 64.
    static WS_FN u64 word_of(u64 high, u32 length) {
        u64 end = u64(1) << 63 >> length;
        return (high & ~(end | (end - 1))) | end;
    }

    WS_FN u64 hash_of(u64 word) const {
        u64 product = word * seed[0];
        return (product ^ (product >> WALDVOGEL_FOLD & ~u64(0) << BELOW)) * seed[1];
    }

    // What comes after a try of the length that a record is for.
    WS_FN u32 try_wide(Address6 key, u32 record) const {
        u32 length = element(ropes + record / WALDVOGEL_STEPS) >> (record % WALDVOGEL_STEPS * 8) & 255;
        key.high = keep(key.high, length);
        key.low = keep(key.low, length < 64 ? 0 : length - 64);
        u64 hash = mix(key.high, seed[0], seed[1]) + length;
        hash = mix(hash ^ key.low, seed[2], seed[3]);
        u32 value;
        u64 first = u64(u32(hash >> 32)) * buckets >> 32, second = u64(u32(hash)) * buckets >> 32;
        if (is_in(first, key, length, &value)) return value;
        u64 last = element(wide + (first + 1) * WALDVOGEL_BUCKET_WORDS - 1);
        bool spilled = last >> WALDVOGEL_BUCKET_SPILLED != 0;
        if (spilled && is_in(second, key, length, &value)) return value;
        return element(misses + record);
    }

    // Whether a key is in a bucket, and its value.
    WS_FN bool is_in(u64 bucket, Address6 key, u32 length, u32* value) const {
        const u64* words = wide + bucket * WALDVOGEL_BUCKET_WORDS;
        u64 last = element(words + WALDVOGEL_BUCKET_WORDS - 1);
        u32 at = WALDVOGEL_BUCKET_SLOTS;
        for (u32 slot = 0; slot < WALDVOGEL_BUCKET_SLOTS; slot++) {
            u32 own = u32(last >> (WALDVOGEL_BUCKET_LENGTHS + 8 * slot)) & 255;
            if (own == length && element(words + 2 * slot + 1) == key.low && element(words + 2 * slot) == key.high) at = slot;
        }
        if (at == WALDVOGEL_BUCKET_SLOTS) return false;
        *value = u32(element(words + WALDVOGEL_BUCKET_VALUES + at / 2) >> (32 * (at % 2)));
        return true;
    }

    static WS_FN u64 keep(u64 bits, u32 length) { return length >= 64 ? bits : bits & ~(~u64(0) >> length); }

    static WS_FN u64 mix(u64 word, u64 one, u64 other) {
        u64 product = word * one;
        return (product ^ product >> 32) * other;
    }
};
