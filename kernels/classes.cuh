// Tuple search and Bloom search (GSwitch, sections 4.2 and 4.3, Algorithms 4 and 5): `crates/classify/src/tss`. Classes of rules with one
// mask, each in a cuckoo table of three subtables; Bloom search asks a filter of each class before its table.
//
//     head      of u64: …, C, the classes in use, …
//     order     numbers of classes, the one with the best entry first
//     classes   records of 32 words: mask, where the table and the filter lie, and a bound that no entry is better than
//     slots     value, rank
//     filters   of 2^log bits each
//
// A block goes through the classes in parts. Of each class of a part its record, and its filter (Bloom search) or its table (tuple search)
// where that is small enough, are brought to shared memory, and all of the block's tuples go through them, a few of them in each
// thread. A tuple stays with one thread and its best rank, priority above number, is the maximum, so nothing is atomic; from
// part to part it lies in shared memory. Classes come best first: who has found what no class left can better is done, and a block whose
// tuples all are brings no more parts.
//
// Bloom search notes which of 64 classes the filters let pass, a bit each, without a branch, and then looks into these few tables, whatever
// class and whichever of its tuples it is that each thread of a warp is at. Of a tuple of 9 words and a class that is, as compiled, 9 masks,
// 9 keys, 5 products with their sums, 7 for the rounds and 17 for the filter: 47 operations, 28 of them of the integer units, which it
// keeps busy, and two reads of shared memory, beside a record's four for all tuples of a thread.

#pragma once
#include "tuples.cuh"

WS_CONSTANT(tss, TSS_CLASSES_AT, 1)
WS_CONSTANT(tss, TSS_CLASS_WORDS, 32)
WS_CONSTANT(tss, TSS_FIRST_SLOT_AT, 16)
WS_CONSTANT(tss, TSS_SUBTABLE_AT, 17)
WS_CONSTANT(tss, TSS_FIRST_BITS_AT, 18)
WS_CONSTANT(tss, TSS_LOG_BITS_AT, 19)
WS_CONSTANT(tss, TSS_BOUND_AT, 20)
WS_CONSTANT(tss, TSS_LEAST_LOG, 5)
WS_CONSTANT(tss, TSS_KEYS, 12)
WS_CONSTANT(tss, TSS_K, 0x9e3779b97f4a7c15)
// Elements of a slot, by the words of a tuple.
WS_CONSTANT(tss, TSS_SLOT_OF_4, 4)
WS_CONSTANT(tss, TSS_SLOT_OF_9, 6)
WS_CONSTANT(tss, TSS_SLOT_OF_10, 6)
// For whoever sizes a part: threads of a block, tuples of a thread, words of a record here, words that hold whether any tuple goes on.
WS_CONSTANT(classes, CLASSES_THREADS, 512)
WS_CONSTANT(classes, CLASSES_TUPLES, 4)
WS_CONSTANT(classes, CLASSES_RECORD, 16)
WS_CONSTANT(classes, CLASSES_FLAGS, 4)

// What a class's record is while it is in shared memory, 16 words; the first ten are its mask.
static constexpr int RECORD_SALT = 10, RECORD_SHIFT = 12, RECORD_AT = 13, RECORD_BOUND = 14;
// Classes whose filters are asked before any of their tables is looked into, a bit of a word each.
static constexpr u32 CLASSES_ASKED = 64;
// Beside the shift: what it has lies in the table's sections, and not in shared memory.
static constexpr u32 RECORD_IS_ELSEWHERE = 1u << 31;

template <bool FILTERED>
struct Classes {
    const u32* order;
    const u32* classes;
    const u64* slots;
    const u32* filters;
    const u64* head;
    u64 rounds[3];
    u32 keys[TSS_KEYS];
    // Classes of a part.
    u32 part;
    // Words of shared memory for a class's filter, or for its table: a multiple of four.
    u32 room;
    // Whether bounds descend along the order, as in every image that nobody damaged. Else the lowest so far counts.
    u32 descends;
    u32 unused;

    static constexpr int N = CLASSES_TUPLES;
    // Elements of a slot.
    template <class Tuple>
    static constexpr u32 SLOT = Tuple::WORDS <= 6 ? TSS_SLOT_OF_4 : TSS_SLOT_OF_9;

    // A class's record out of shared memory.
    struct Record {
        u32 words[CLASSES_RECORD];
    };

    // Where all is in a block's shared memory.
    struct Staged {
        u64* bests;
        // Of a part with an even number and of one with an odd one; and the lowest bound so far.
        u32* flags;
        u32* records;
        u32* rooms;
    };

    WS_FN Staged staged(const Block& block) const {
        u64* bests = block.shared<u64>();
        u32* flags = reinterpret_cast<u32*>(bests + CLASSES_THREADS * CLASSES_TUPLES);
        u32* records = flags + CLASSES_FLAGS;
        return Staged{bests, flags, records, records + part * u32(CLASSES_RECORD)};
    }

    template <class Tuple>
    WS_FN void look_up(const Block& block, const Batch& batch) const {
        Staged shared = staged(block);
        u32 count = u32(element(head + TSS_CLASSES_AT));
        u64 tile = u64(N) * block.threads();
        for (u64 start = block.index() * tile; start < batch.count; start += block.count() * tile) {
            block.each([&](u32 thread) {
                for (int i = 0; i < N; i++) shared.bests[u32(i) * block.threads() + thread] = 0;
            });
            for (u32 first = 0, turn = 0; first < count; first += part, turn++) {
                u32 here = count - first < part ? count - first : part;
                // What is one part stays for the next tuples.
                if (count > part || start == block.index() * tile) {
                    block.barrier();
                    stage_part<Tuple>(block, shared, first, here, turn);
                    block.barrier();
                    if (descends == 0) {
                        block.each([&](u32 thread) {
                            if (thread == 0) make_descend(shared, first, here);
                        });
                        block.barrier();
                    }
                }
                block.each([&](u32 thread) {
                    bool goes_on = pass<Tuple>(block, batch, shared, start, thread, here, turn);
                    if (goes_on && here == part) shared.flags[turn % 2] = 1;
                });
                if (first + here == count) break;
                block.barrier();
                // Two barriers come before it is written to again.
                if (shared.flags[turn % 2] == 0) break;
            }
            block.each([&](u32 thread) {
                for (int i = 0; i < N; i++) {
                    u64 number = start + u64(i) * block.threads() + thread;
                    u64 best = shared.bests[u32(i) * block.threads() + thread];
                    if (number < batch.count) give_number(batch, number, best == 0 ? 0 : ~u32(best));
                }
            });
        }
    }

    // Brings classes to shared memory, 32 threads each.
    template <class Tuple>
    WS_FN void stage_part(const Block& block, const Staged& shared, u32 first, u32 count, u32 turn) const {
        block.each([&](u32 thread) {
            if (thread == 0) shared.flags[turn % 2] = 0;
            for (u32 at = thread; at < (count + 31) / 32 * 32 * 32; at += block.threads()) {
                u32 place = at / 32, lane = at % 32;
                if (place >= count) break;
                u32 number = element(order + first + place);
                const u32* record = classes + u64(number) * TSS_CLASS_WORDS;
                // What there is of it to bring, in words, and where it starts.
                const u32* from;
                u32 words, log = element(record + TSS_LOG_BITS_AT);
                if constexpr (FILTERED) {
                    from = filters + element(record + TSS_FIRST_BITS_AT);
                    words = 1u << (log - u32(TSS_LEAST_LOG));
                } else {
                    u64 slot = element(record + TSS_FIRST_SLOT_AT);
                    from = reinterpret_cast<const u32*>(slots + slot * SLOT<Tuple>);
                    u64 all = 3 * u64(element(record + TSS_SUBTABLE_AT)) * (2 * SLOT<Tuple>);
                    words = all != 0 && all <= room ? u32(all) : ~0u;
                }
                bool is_here = words <= room;
                if (lane < CLASSES_RECORD) {
                    u64 salt = number * TSS_K;
                    u32 word = element(record + lane);
                    word = lane == RECORD_SALT ? u32(salt) : word;
                    word = lane == RECORD_SALT + 1 ? u32(salt >> 32) : word;
                    word = lane == RECORD_SHIFT ? (32 - log) | (is_here ? 0 : RECORD_IS_ELSEWHERE) : word;
                    word = lane == RECORD_AT ? number : word;
                    word = lane >= RECORD_BOUND ? element(record + TSS_BOUND_AT + (lane - RECORD_BOUND)) : word;
                    shared.records[place * u32(CLASSES_RECORD) + lane] = word;
                }
                if (is_here) bring(shared.rooms + place * room, from, words, lane);
            }
        });
    }

    // A thread's share of so many words to where four of them start: 16 bytes at once, if they lie so.
    static WS_FN void bring(u32* to, const u32* from, u32 words, u32 lane) {
        constexpr u32 LANES = 32;
        bool by_fours = reinterpret_cast<u64>(from) % 16 == 0 && words % 4 == 0;
        if (!by_fours) {
            for (u32 word = lane; word < words; word += LANES) to[word] = element(from + word);
            return;
        }
        WS_UNROLL_4
        for (u32 word = 4 * lane; word < words; word += 4 * LANES) {
            *reinterpret_cast<Vector<u32, 4>*>(to + word) = four_elements(from + word);
        }
    }

    // Puts the lowest bound up to each class in its bound's place.
    WS_FN void make_descend(const Staged& shared, u32 first, u32 count) const {
        auto* lowest = reinterpret_cast<u64*>(shared.flags + 2);
        u64 bound = first == 0 ? ~0ull : *lowest;
        for (u32 at = 0; at < count; at++) {
            u32* record = shared.records + at * u32(CLASSES_RECORD);
            u64 own = bound_of(record);
            bound = own < bound ? own : bound;
            record[RECORD_BOUND] = u32(bound);
            record[RECORD_BOUND + 1] = u32(bound >> 32);
        }
        *lowest = bound;
    }

    // A thread's tuples through the classes of a part; whether any of them may be bettered by classes after it.
    template <class Tuple>
    WS_FN bool pass(const Block& block, const Batch& batch, const Staged& shared, u64 start, u32 thread, u32 count,
                    u32 turn) const {
        Tuple tuples[N] = {};
        u64 bests[N];
        u64 bound = bound_of(shared.records);
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            u64 number = start + u64(i) * block.threads() + thread;
            // Those past the end are done.
            bests[i] = ~0ull;
            if (number >= batch.count) continue;
            bests[i] = shared.bests[u32(i) * block.threads() + thread];
            if (bests[i] < bound) tuples[i].load(batch, number);
        }
        for (u32 at = 0, some; at < count && any_below(bests, bound_of(shared.records + at * u32(CLASSES_RECORD))); at += some) {
            // Fewer where many searches end.
            u32 most = turn == 0 && at < CLASSES_ASKED ? CLASSES_ASKED / 2 : CLASSES_ASKED;
            some = count - at < most ? count - at : most;
            if constexpr (FILTERED) {
                filtered<Tuple>(tuples, shared, at, some, bests);
            } else {
                probed<Tuple>(tuples, shared, at, some, bests);
            }
        }
        bound = bound_of(shared.records + (count - 1) * u32(CLASSES_RECORD));
        bool goes_on = false;
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            if (bests[i] == ~0ull) continue;
            shared.bests[u32(i) * block.threads() + thread] = bests[i];
            goes_on |= bests[i] < bound;
        }
        return goes_on;
    }

    // Up to CLASSES_ASKED classes, of which the filters say whose tables to look into.
    template <class Tuple>
    WS_FN void filtered(const Tuple* tuples, const Staged& shared, u32 from, u32 count, u64* bests) const {
        u64 passed[N] = {};
        for (u32 at = 0; at < count; at += 32) {
            u32 some = count - at < 32 ? count - at : 32, bits[N] = {};
            for (u32 place = from + at; place < from + at + some; place++) ask(tuples, shared, place, bits);
            // The last that was asked has the highest bit.
            WS_UNROLL
            for (int i = 0; i < N; i++) passed[i] |= u64(bits[i] >> (32 - some)) << at;
        }
        // A turn is for whatever tuple of a thread has a table left, so that a warp takes no more turns than the thread with most.
        for (;;) {
            u64 left = 0, best = 0;
            Tuple tuple = {};
            int which = N;
            WS_UNROLL
            for (int i = 0; i < N; i++) {
                if (passed[i] == 0) continue;
                which = i;
                left = passed[i];
                best = bests[i];
                tuple = tuples[i];
            }
            if (left == 0) break;
            const u32* record = shared.records + (from + zeros_below(left)) * u32(CLASSES_RECORD);
            left &= left - 1;
            if (best < bound_of(record)) {
                Record here = record_of(record);
                u64 found = look_into<Tuple, false>(tuple, here, slots_of<Tuple>(here), hash(tuple, here));
                best = found > best ? found : best;
            } else {
                left = 0;
            }
            WS_UNROLL
            for (int i = 0; i < N; i++) {
                if (i != which) continue;
                passed[i] = left;
                bests[i] = best;
            }
        }
    }

    // Asks a class's filter for the two bits of each tuple: whether both are set becomes the highest bit, above those of the classes before.
    template <class Tuple>
    WS_FN void ask(const Tuple* tuples, const Staged& shared, u32 place, u32* passed) const {
        Record here = record_of(shared.records + place * u32(CLASSES_RECORD));
        u64 hashes[N];
        WS_UNROLL
        for (int i = 0; i < N; i++) hashes[i] = hash(tuples[i], here);
        u32 shift = here.words[RECORD_SHIFT] & 31;
        if ((here.words[RECORD_SHIFT] & RECORD_IS_ELSEWHERE) == 0) {
            const u32* filter = shared.rooms + place * room;
            take_bits(hashes, shift, passed, [&](u32 word) { return filter[word]; });
        } else {
            u32 number = here.words[RECORD_AT];
            const u32* filter = filters + element(classes + u64(number) * TSS_CLASS_WORDS + TSS_FIRST_BITS_AT);
            take_bits(hashes, shift, passed, [&](u32 word) { return element(filter + word); });
        }
    }

    template <class Words>
    static WS_FN void take_bits(const u64* hashes, u32 shift, u32* passed, const Words& words) {
        WS_UNROLL
        for (int i = 0; i < N; i++) {
            u32 one = u32(hashes[i] >> 32) >> shift, other = u32(hashes[i]) >> shift;
            u32 both = from_bit(words(one / 32), one) & from_bit(words(other / 32), other);
            passed[i] = u32((u64(both) << 32 | passed[i]) >> 1);
        }
    }

    // A word of a filter from one of its bits on.
    static WS_FN u32 from_bit(u32 word, u32 bit) {
#if WS_GPU
        return __funnelshift_r(word, 0, bit);
#else
        return word >> bit % 32;
#endif
    }

    // Up to 32 classes, all of whose tables are looked into.
    template <class Tuple>
    WS_FN void probed(const Tuple* tuples, const Staged& shared, u32 from, u32 count, u64* bests) const {
        for (u32 at = from; at < from + count; at++) {
            const u32* record = shared.records + at * u32(CLASSES_RECORD);
            Record here = record_of(record);
            u64 bound = bound_of(record);
            if (!any_below(bests, bound)) return;
            bool is_here = (here.words[RECORD_SHIFT] & RECORD_IS_ELSEWHERE) == 0;
            auto* table = reinterpret_cast<const u64*>(shared.rooms + at * room);
            WS_UNROLL
            for (int i = 0; i < N; i++) {
                if (bests[i] >= bound) continue;
                u64 hashed = hash(tuples[i], here), found;
                if (is_here) {
                    found = look_into<Tuple, true>(tuples[i], here, table, hashed);
                } else {
                    found = look_into<Tuple, false>(tuples[i], here, slots_of<Tuple>(here), hashed);
                }
                bests[i] = found > bests[i] ? found : bests[i];
            }
        }
    }

    static WS_FN Record record_of(const u32* at) {
        Record record;
        WS_UNROLL
        for (int i = 0; i < int(CLASSES_RECORD); i += 4) {
            auto four = *reinterpret_cast<const Vector<u32, 4>*>(at + i);
            WS_UNROLL
            for (int j = 0; j < 4; j++) record.words[i + j] = four.at[j];
        }
        return record;
    }

    static WS_FN u64 bound_of(const u32* record) { return u64(record[RECORD_BOUND + 1]) << 32 | record[RECORD_BOUND]; }

    static WS_FN bool any_below(const u64* bests, u64 bound) {
        bool any = false;
        WS_UNROLL
        for (int i = 0; i < N; i++) any |= bests[i] < bound;
        return any;
    }

    // NH, and two rounds after it.
    template <class Tuple>
    WS_FN u64 hash(const Tuple& tuple, const Record& record) const {
        u64 sum = u64(record.words[RECORD_SALT + 1]) << 32 | record.words[RECORD_SALT];
        WS_UNROLL
        for (int i = 0; i < Tuple::WORDS; i += 2) {
            u32 one = (tuple.at[i] & record.words[i]) + keys[i], other = keys[i + 1];
            if (i + 1 < Tuple::WORDS) other += tuple.at[i + 1] & record.words[i + 1];
            sum = add_product(sum, one, other);
        }
        return low_product(round(low_product(sum, rounds[0])), rounds[1]);
    }

    static WS_FN u64 round(u64 x) { return x ^ x >> 32; }

    // A class's table where the sections are.
    template <class Tuple>
    WS_FN const u64* slots_of(const Record& here) const {
        const u32* record = classes + u64(here.words[RECORD_AT]) * TSS_CLASS_WORDS;
        return slots + u64(element(record + TSS_FIRST_SLOT_AT)) * SLOT<Tuple>;
    }

    // The rank that a table has for a tuple; 0 for none.
    template <class Tuple, bool STAGED>
    WS_FN u64 look_into(const Tuple& tuple, const Record& here, const u64* table, u64 hash) const {
        constexpr int S = SLOT<Tuple>;
        // Words that three reads bring before any is waited for.
        constexpr int AHEAD = 4;
        u32 d = element(classes + u64(here.words[RECORD_AT]) * TSS_CLASS_WORDS + TSS_SUBTABLE_AT);
        u64 parts[3] = {hash >> 32, hash & 0xffffffff, round(hash) * rounds[2] >> 32};
        const u64* places[3];
        u32 differ[3];
        u64 best = 0;
        WS_UNROLL
        for (int s = 0; s < 3; s++) {
            places[s] = table + u64(u32(s) * d + u32(parts[s] * d >> 32)) * S;
            auto first = four_of<STAGED>(places[s]);
            differ[s] = 0;
            WS_UNROLL
            for (int i = 0; i < AHEAD; i++) differ[s] |= (tuple.at[i] & here.words[i]) ^ first.at[i];
        }
        WS_UNROLL
        for (int s = 0; s < 3; s++) {
            if (differ[s] != 0) continue;
            auto* words = reinterpret_cast<const u32*>(places[s]);
            u32 other = 0;
            WS_UNROLL
            for (int i = AHEAD; i < Tuple::WORDS; i++) {
                other |= (tuple.at[i] & here.words[i]) ^ (STAGED ? words[i] : element(words + i));
            }
            // A vacant slot has a rank of 0, whatever its value is.
            u64 rank = STAGED ? places[s][S - 1] : element(places[s] + (S - 1));
            if (other == 0 && rank > best) best = rank;
        }
        return best;
    }

    // Four words at once.
    template <bool STAGED>
    static WS_FN Vector<u32, 4> four_of(const u64* at) {
        auto* words = reinterpret_cast<const u32*>(at);
        if constexpr (!STAGED) return four_elements(words);
        return *reinterpret_cast<const Vector<u32, 4>*>(words);
    }
};
