/* DPDK's longest-prefix-match and access-control libraries behind plain C functions that Rust can call.
 *
 * Three things need C. rte_lpm's lookups are inline functions in its header. rte_acl's rules are of a type that a macro makes for each
 * number of fields. And their memory: DPDK is made for huge pages, which need
 * a reservation by the administrator. With --no-huge its own heap is shared memory in 4 KiB pages, on which a table of tens of
 * megabytes loses much of its speed to address translation. A rival is to be measured at its best, so this file gives
 * DPDK an external heap of anonymous memory that the kernel backs with transparent huge pages, and every table is created in it.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include <rte_acl.h>
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

/* rte_acl: fields of the headers of `trace.rs`, 16 bytes of protocol, 3 of nothing, source, destination and ports. */
enum { PROTO, SRC, DST, SPORT, DPORT, FIELDS };

RTE_ACL_RULE_DEF(tuple_rule, FIELDS);

/* `Rule` of acl.rs: numbers in host order, lengths of prefixes, the first and the last port. */
struct ws_acl_rule {
	uint32_t number, priority, src, dst;
	uint16_t sport[2], dport[2];
	uint8_t src_len, dst_len, proto, proto_mask;
};

struct rte_acl_ctx *ws_acl_create(const char *name, uint32_t max_rules)
{
	struct rte_acl_param param = {
		.name = name,
		.socket_id = heap_socket,
		.rule_size = RTE_ACL_RULE_SZ(FIELDS),
		.max_rule_num = max_rules,
	};

	return rte_acl_create(&param);
}

/* 0, or a negative error number. */
int ws_acl_add(struct rte_acl_ctx *acl, const struct ws_acl_rule *of)
{
	struct tuple_rule rule = {
		.data = { .category_mask = 1, .priority = (int32_t)of->priority, .userdata = of->number },
	};

	rule.field[PROTO].value.u8 = of->proto;
	rule.field[PROTO].mask_range.u8 = of->proto_mask;
	rule.field[SRC].value.u32 = of->src;
	rule.field[SRC].mask_range.u32 = of->src_len;
	rule.field[DST].value.u32 = of->dst;
	rule.field[DST].mask_range.u32 = of->dst_len;
	rule.field[SPORT].value.u16 = of->sport[0];
	rule.field[SPORT].mask_range.u16 = of->sport[1];
	rule.field[DPORT].value.u16 = of->dport[0];
	rule.field[DPORT].mask_range.u16 = of->dport[1];
	return rte_acl_add_rules(acl, (const struct rte_acl_rule *)&rule, 1);
}

/* 0, or a negative error number. The two ports are gathered as one input of four bytes. */
int ws_acl_build(struct rte_acl_ctx *acl)
{
	struct rte_acl_config config = {
		.num_categories = 1,
		.num_fields = FIELDS,
		.defs = {
			{ RTE_ACL_FIELD_TYPE_BITMASK, 1, PROTO, 0, 0 },
			{ RTE_ACL_FIELD_TYPE_MASK, 4, SRC, 1, 4 },
			{ RTE_ACL_FIELD_TYPE_MASK, 4, DST, 2, 8 },
			{ RTE_ACL_FIELD_TYPE_RANGE, 2, SPORT, 3, 12 },
			{ RTE_ACL_FIELD_TYPE_RANGE, 2, DPORT, 3, 14 },
		},
	};

	return rte_acl_build(acl, &config);
}
