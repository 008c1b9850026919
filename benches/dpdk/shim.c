/* DPDK's longest-prefix-match libraries behind plain C functions that Rust can call.
 *
 * Two things need C. rte_lpm's lookups are inline functions in its header. And its memory: DPDK is made for huge pages, which need
 * a reservation by the administrator. With --no-huge its own heap is shared memory in 4 KiB pages, on which a table of tens of
 * megabytes loses much of its speed to address translation. A rival is to be measured at its best, so this file gives
 * DPDK an external heap of anonymous memory that the kernel backs with transparent huge pages, and every table is created in it.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_lpm.h>
#include <rte_malloc.h>

#define HEAP "wirespeed"
#define PAGE (2ul << 20)

static int heap_socket;

static int add_heap(size_t bytes)
{
	size_t pages = bytes / PAGE;
	char *at = mmap(NULL, (pages + 1) * PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	rte_iova_t *iova;
	int rc = -1;

	if (at == MAP_FAILED)
		return -1;
	at = (char *)(((uintptr_t)at + PAGE - 1) / PAGE * PAGE);
	(void)madvise(at, pages * PAGE, MADV_HUGEPAGE);
	iova = malloc(pages * sizeof(*iova));
	if (iova == NULL)
		return -1;
	for (size_t i = 0; i < pages; i++)
		iova[i] = (uintptr_t)at + i * PAGE;
	if (rte_malloc_heap_create(HEAP) == 0 &&
	    rte_malloc_heap_memory_add(HEAP, at, pages * PAGE, iova, pages, PAGE) == 0) {
		heap_socket = rte_malloc_heap_get_socket(HEAP);
		rc = heap_socket < 0 ? -1 : 0;
	}
	free(iova);
	return rc;
}

/* Starts DPDK on one core, with `bytes` of address space for tables. Once a process. 0, or an errno. */
int ws_dpdk_start(unsigned int core, size_t bytes)
{
	char lcore[16];
	char *arguments[] = {
		"wirespeed", "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf",
		"--iova-mode=va", "--force-max-simd-bitwidth=512", "--log-level=error",
		"-m", "64", "-l", lcore, NULL,
	};

	snprintf(lcore, sizeof(lcore), "%u", core);
	if (rte_eal_init(sizeof(arguments) / sizeof(*arguments) - 1, arguments) < 0)
		return rte_errno ? rte_errno : EINVAL;
	if (add_heap(bytes) < 0)
		return rte_errno ? rte_errno : ENOMEM;
	return 0;
}

/* Bytes that all tables together hold now. */
size_t ws_dpdk_memory(void)
{
	struct rte_malloc_socket_stats stats;

	if (rte_malloc_get_socket_stats(heap_socket, &stats) < 0)
		return 0;
	return stats.heap_allocsz_bytes;
}

int ws_dpdk_errno(void)
{
	return rte_errno;
}

/* rte_fib: IPv4, DIR-24-8. Next hops of 2^width bytes; no route gives 0. */
struct rte_fib *ws_fib_create(const char *name, int max_routes, int width, uint32_t tbl8s)
{
	struct rte_fib_conf conf = {
		.type = RTE_FIB_DIR24_8,
		.default_nh = 0,
		.max_routes = max_routes,
		.dir24_8 = { .nh_sz = (enum rte_fib_dir24_8_nh_sz)width, .num_tbl8 = tbl8s },
	};

	return rte_fib_create(name, heap_socket, &conf);
}

/* rte_fib6: IPv6, a trie of 24-8-8-... bits. Next hops of 2^width bytes, 2 at least; no route gives 0. */
struct rte_fib6 *ws_fib6_create(const char *name, int max_routes, int width, uint32_t tbl8s)
{
	struct rte_fib6_conf conf = {
		.type = RTE_FIB6_TRIE,
		.default_nh = 0,
		.max_routes = max_routes,
		.trie = { .nh_sz = (enum rte_fib_trie_nh_sz)width, .num_tbl8 = tbl8s },
	};

	return rte_fib6_create(name, heap_socket, &conf);
}

struct rte_lpm *ws_lpm_create(const char *name, uint32_t max_rules, uint32_t tbl8s)
{
	struct rte_lpm_config conf = { .max_rules = max_rules, .number_tbl8s = tbl8s, .flags = 0 };

	return rte_lpm_create(name, heap_socket, &conf);
}

/* A result carries RTE_LPM_LOOKUP_SUCCESS above a 24-bit next hop where there is a route. */
void ws_lpm_lookup_bulk(const struct rte_lpm *lpm, const uint32_t *keys, uint32_t *results, unsigned int n)
{
	(void)rte_lpm_lookup_bulk_func(lpm, keys, results, n);
}
