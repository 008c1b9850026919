// Linear search (GSwitch, section 4.1, Algorithms 1 to 3): `crates/classify/src/linear`. Every rule in turn, best first; the first that
// matches is the answer.
//
//     entries   groups of 16 lanes: word 0: 16 values, 16 masks | word 1: 16 values, 16 masks | …
//
// As in the paper a block brings as many rules as fit to its shared memory, goes with them through its tuples, and then brings the next
// ones; tuples that have their answer are passed by. A tuple stays with one thread, so that answers need no atomics. Each thread holds a few
// tuples against four lanes at once: a word of four values and masks is read for all of them, as one read of 16 bytes by all threads takes
// shared memory as long as eight operations on 32 bits take the ALUs. Of a tuple and a rule with 9 words that is 8 operations for the
// first four words, half a read, and rarely the rest.

#pragma once
#include "tuples.cuh"

WS_CONSTANT(linear, LINEAR_LANES, 16)
WS_CONSTANT(linear, LINEAR_GROUPS_AT, 1)

struct Linear {
    const u32* entries;
    const u32* numbers;
    // Two words; patches change how many groups are in use.
    const u64* head;
    // Bytes of shared memory for groups: one group at least, or 0 to read them where they are.
    u32 staged;
    u32 unused;

    template <class Tuple>
    WS_FN void look_up(const Block& block, const Batch& batch) const {
        constexpr u32 GROUP_BYTES = Tuple::WORDS * 2 * LINEAR_LANES * 4;
        // Unstaged, so many that 32 bits say where each is.
        constexpr u32 UNSTAGED = 1 << 20;
        u32 groups = u32(element(head + LINEAR_GROUPS_AT)), part = staged == 0 ? UNSTAGED : staged / GROUP_BYTES;
        // Once at least, so that every tuple has an answer.
        for (u32 first = 0; first == 0 || first < groups; first += part) {
            u32 count = groups - first < part ? groups - first : part;
            const u32* here = entries + u64(first) * (GROUP_BYTES / 4);
            if (staged == 0) {
                block.each([&](u32 thread) { pass<Tuple>(block, batch, thread, here, first, count); });
                continue;
            }
            block.barrier();
            stage(block, block.shared<u8>(), here, count * GROUP_BYTES);
            block.barrier();
            // Apart from the above, so that the compiler knows what memory it reads.
            block.each([&](u32 thread) { pass<Tuple>(block, batch, thread, block.shared<u32>(), first, count); });
        }
    }

    // A thread's tuples against some of the groups.
    template <class Tuple>
    WS_FN void pass(const Block& block, const Batch& batch, u32 thread, const u32* here, u32 first, u32 count) const {
        // Tuples of a thread: their words are in registers.
        constexpr int N = Tuple::WORDS <= 9 ? 4 : Tuple::WORDS <= 10 ? 3 : 2;
        u64 tile = u64(N) * block.threads();
        for (u64 at = block.index() * tile + thread; at < batch.count; at += block.count() * tile) {
            Tuple tuples[N] = {};
            // The number that answers a tuple; none yet while all bits are set, which no number is.
            u32 found[N];
            u32 open = 0;
            WS_UNROLL
            for (int i = 0; i < N; i++) {
                u64 number = at + u64(i) * block.threads();
                found[i] = 0;
                if (number >= batch.count) continue;
                if (first != 0 && given_number(batch, number) != 0) continue;
                tuples[i].load(batch, number);
                found[i] = ~0u;
                open++;
            }
            for (u32 group = 0; group < count && open != 0; group++) {
                search<Tuple, N>(tuples, here + group * (Tuple::WORDS * 2 * u32(LINEAR_LANES)),
                                 numbers + (u64(first) + group) * LINEAR_LANES, found, &open);
            }
            WS_UNROLL
            for (int i = 0; i < N; i++) {
                u64 number = at + u64(i) * block.threads();
                if (number >= batch.count) continue;
                if (first != 0 && (found[i] == 0 || found[i] == ~0u)) continue;
                give_number(batch, number, found[i] == ~0u ? 0 : found[i]);
            }
        }
    }

    // Tuples against the 16 lanes of a group, which have these numbers. A lane of number 0 is no entry, whatever it matches: no engine
    // writes one that matches anything, and passes over later groups take 0 for no answer.
    template <class Tuple, int N>
    static WS_FN void search(const Tuple* tuples, const u32* group, const u32* numbers, u32* found, u32* open) {
        // Words after which those that nobody matches any more are left.
        constexpr int HALF = Tuple::WORDS > 4 ? 4 : Tuple::WORDS;
        for (u32 lane = 0; lane < LINEAR_LANES; lane += 4) {
            u32 differ[N][4];
            compare<Tuple, N, 0, HALF>(tuples, group + lane, differ);
            if (!any_match<N>(differ, found)) continue;
            if constexpr (HALF < Tuple::WORDS) {
                compare<Tuple, N, HALF, Tuple::WORDS>(tuples, group + lane, differ);
                if (!any_match<N>(differ, found)) continue;
            }
            WS_UNROLL
            for (int i = 0; i < N; i++) {
                WS_UNROLL
                for (int j = 0; j < 4; j++) {
                    if (differ[i][j] != 0 || found[i] != ~0u) continue;
                    u32 number = element(numbers + lane + j);
                    if (number != 0) {
                        found[i] = number;
                        --*open;
                    }
                }
            }
        }
    }

    template <class Tuple, int N, int FROM, int TO>
    static WS_FN void compare(const Tuple* tuples, const u32* at, u32 (*differ)[4]) {
        WS_UNROLL
        for (int word = FROM; word < TO; word++) {
            auto values = *reinterpret_cast<const Vector<u32, 4>*>(at + word * 2 * LINEAR_LANES);
            auto masks = *reinterpret_cast<const Vector<u32, 4>*>(at + (word * 2 + 1) * LINEAR_LANES);
            WS_UNROLL
            for (int i = 0; i < N; i++) {
                WS_UNROLL
                for (int j = 0; j < 4; j++) {
                    u32 other = (tuples[i].at[word] & masks.at[j]) ^ values.at[j];
                    differ[i][j] = word == 0 ? other : differ[i][j] | other;
                }
            }
        }
    }

    // Whether a tuple without an answer may have one among four lanes.
    template <int N>
    static WS_FN bool any_match(const u32 (*differ)[4], const u32* found) {
        bool any = false;
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            bool here = false;
            WS_UNROLL
            for (int j = 0; j < 4; j++) here |= differ[i][j] == 0;
            any |= here & (found[i] == ~0u);
        }
        return any;
    }
};
