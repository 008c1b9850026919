#include "esp.cuh"

// Three blocks, each with a table of its own, keep a multiprocessor busy and leave 80 registers to a thread: none is spilled.
#define WS_ESP(name, opens)                                                                                            \
    WS_KERNEL_HELD(name, 256, 3, EspChunk, chunk, EspWork, work) { esp_cipher<opens>(block, chunk, work); }
#define WS_ESP_SHA1(name, opens)                                                                                       \
    WS_KERNEL(name, 128, EspChunk, chunk, EspWork, work) {                                                             \
        block.each([&](u32 thread) {                                                                                   \
            u64 all = u64(block.count()) * block.threads();                                                            \
            for (u64 at = u64(block.index()) * block.threads() + thread; at < chunk.count; at += all)                  \
                esp_sha1<opens>(chunk, work, at);                                                                      \
        });                                                                                                            \
    }

WS_ESP(esp_seal, false)
WS_ESP(esp_open, true)
WS_ESP_SHA1(esp_sha1_seal, false)
WS_ESP_SHA1(esp_sha1_open, true)
