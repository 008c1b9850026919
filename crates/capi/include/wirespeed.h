/* Wirespeed: IP and name lookup and packet classification. Made by `cargo xtask header`: don't edit.
 *
 * Rules for all functions:
 *
 * - A function that makes a handle returns NULL if it fails. Every other function that can fail returns a
 *   ws_status, WS_STATUS_OK (0) or a negative one. ws_last_error() then has the reason as text.
 * - A call that fails changes nothing. What it was to write to is then unspecified.
 * - A pointer is NULL, or leads to as many elements as the call says, aligned for their type. Arrays that are
 *   read and arrays that are written don't overlap. NULL, misaligned pointers, overlaps and lengths beyond
 *   the address space are refused. An array of no elements may be NULL.
 * - Texts end with a zero byte and are UTF-8.
 * - Threads: any thread may call any function with any handle. Calls that change one table wait for each
 *   other. Lookups wait for nobody; threads share a reader, or each has its own. A handle is freed once,
 *   by a thread that knows that no other uses it. Readers stay valid when their table is freed, and then
 *   keep its last state.
 * - No function calls back, and none ends the program: a defect of the library comes back as
 *   WS_STATUS_DEFECT. The table of such a call refuses all later changes; its readers go on.
 */

#ifndef WIRESPEED_H
#define WIRESPEED_H

#include <stddef.h>
#include <stdint.h>

/**
 * Outcome of a call.
 */
typedef enum {
    /**
     * Success.
     */
    WS_STATUS_OK = 0,
    /**
     * An argument that no call may have: NULL, a wrong length or number, a prefix with host bits.
     */
    WS_STATUS_ARGUMENT = -1,
    /**
     * A file, a limit or the state of a table that does not allow the call.
     */
    WS_STATUS_FAILED = -2,
    /**
     * A defect of the library.
     */
    WS_STATUS_DEFECT = -3,
} ws_status;

/**
 * Form that a name is written in.
 */
typedef enum {
    /**
     * Components, as in /com/parc.
     */
    WS_NAME_FORM_COMPONENTS = 0,
    /**
     * Domain, as in www.parc.com or *.parc.com.
     */
    WS_NAME_FORM_DOMAIN = 1,
    /**
     * Address of the web, as in `http://parc.com/a/b`.
     */
    WS_NAME_FORM_URL = 2,
    /**
     * URI of NDN, as in ndn:/com/parc.
     */
    WS_NAME_FORM_NDN = 3,
} ws_name_form;

/**
 * Kind of packets that rules are for.
 */
typedef enum {
    /**
     * Packets of IPv4: ws_tuple4.
     */
    WS_TUPLE_IPV4 = 4,
    /**
     * Packets of IPv6: ws_tuple6.
     */
    WS_TUPLE_IPV6 = 6,
} ws_tuple;

/**
 * Looks up names in a table or an image.
 */
typedef struct ws_name_reader ws_name_reader;

/**
 * Table of names, live: it changes while its readers look up. The longest prefix of components wins. A list
 * of domains has scopes and exceptions, and takes no changes.
 */
typedef struct ws_names ws_names;

/**
 * Looks up addresses in a table or an image.
 */
typedef struct ws_reader ws_reader;

/**
 * Classifies packets by a set of rules or an image.
 */
typedef struct ws_rule_reader ws_rule_reader;

/**
 * Set of rules, live: it changes while its readers look up. The matching rule of the highest priority wins,
 * among equals the one with the lower number.
 */
typedef struct ws_rules ws_rules;

/**
 * Table of IPv4 and IPv6 routes, live: it changes while its readers look up.
 */
typedef struct ws_table ws_table;

/**
 * Settings of a table that is built. Set size to sizeof(ws_options) and all that is not needed to 0. NULL in
 * place of the settings stands for the defaults. An image file has settings of its own, and takes none.
 *
 * The settings from format on say how files are read; for addresses and rules also those that are loaded
 * later. They are those of lookupctl of the same names. A file that has no use for one is refused. Lists
 * have commas between.
 */
typedef struct {
    /**
     * sizeof(ws_options).
     */
    size_t size;
    /**
     * Name of the engine, or NULL for the best one.
     */
    const char *engine;
    /**
     * Most bytes of the compiled table in its two copies; for addresses, of each family. 0 for the default.
     */
    uint64_t memory_cap;
    /**
     * Whether lookups can give the length of the matched prefix, 0 or 1. Only for addresses.
     */
    uint8_t prefix_lookups;
    /**
     * Whether labels of routes in MRT and bgpdump are the origins of their AS paths, and not their next
     * hops, 0 or 1. Only for addresses.
     */
    uint8_t origins;
    /**
     * Whether host bits of prefixes are cleared, 0 or 1. By default such prefixes are refused. Only for
     * addresses.
     */
    uint8_t mask_host_bits;
    /**
     * Family of addresses in CSV that are decimal numbers, 4 or 6, or 0. Only for addresses.
     */
    uint8_t address_numbers;
    /**
     * Whether only the ICANN section of the Public Suffix List is read, 0 or 1. Only for names.
     */
    uint8_t icann;
    /**
     * Name of the format, such as "mrt" or "hosts", or NULL to recognise it by content.
     */
    const char *format;
    /**
     * Columns of CSV, or fields of another format with fields, that are the label, such as "asn,country".
     * NULL for all. Only for addresses and names.
     */
    const char *value_columns;
    /**
     * Column of CSV that has the names, such as "domain". NULL to find it by usual names. Only for names.
     */
    const char *name_column;
    /**
     * Column of CSV with the prefix, or the two with an address and a length, such as "net,len". NULL to
     * find them by usual names. Only for addresses.
     */
    const char *prefix_columns;
    /**
     * Columns of CSV with the first and the last address of a range, such as "from,to", or NULL. Only for
     * addresses.
     */
    const char *range_columns;
    /**
     * Peer whose routes are taken from MRT or bgpdump: a number, an address or an AS. NULL for the one with
     * most prefixes. Only for addresses.
     */
    const char *peer;
    /**
     * VRF whose routes are taken from FRR's JSON of several VRFs, or NULL. Only for addresses.
     */
    const char *vrf;
    /**
     * Set whose members are taken from a file with several sets of ipset or nft, or NULL. Only for
     * addresses.
     */
    const char *set;
    /**
     * Facts about all packets that decide rules of a file, such as "ct=new,in=eth0", or NULL. Only for
     * rules.
     */
    const char *assume;
    /**
     * Chain of iptables-save (NULL for INPUT) or of nft; security groups, by ids or names; or the network
     * policy, by NAME or NAMESPACE/NAME. Only for rules.
     */
    const char *chain;
    /**
     * Table of iptables-save (NULL for filter) or of nft; "ingress" (NULL) or "egress" of security groups
     * and network policies. Only for rules.
     */
    const char *rule_table;
} ws_options;

/**
 * Change of a name.
 */
typedef struct {
    /**
     * Name, in the form that the call states.
     */
    const char *name;
    /**
     * Result, from 1. 0 removes the name.
     */
    uint32_t result;
} ws_name_change;

/**
 * Change of a rule: with a rule and number 0 a new rule, with a rule and a number the rule in that number's
 * place, and without a rule the removal of that number.
 */
typedef struct {
    /**
     * Rule as text, or NULL.
     */
    const char *rule;
    /**
     * Number of the rule, or 0.
     */
    uint32_t number;
} ws_rule_change;

/**
 * Header fields of an IPv4 packet, in host order.
 */
typedef struct {
    /**
     * Source address.
     */
    uint32_t src;
    /**
     * Destination address.
     */
    uint32_t dst;
    /**
     * Source port, type of ICMP, or 0.
     */
    uint16_t sport;
    /**
     * Destination port, code of ICMP, or 0.
     */
    uint16_t dport;
    /**
     * Protocol.
     */
    uint8_t proto;
} ws_tuple4;

/**
 * Header fields of an IPv6 packet.
 */
typedef struct {
    /**
     * Source address in network order.
     */
    uint8_t src[16];
    /**
     * Destination address in network order.
     */
    uint8_t dst[16];
    /**
     * Source port in host order, type of ICMPv6, or 0.
     */
    uint16_t sport;
    /**
     * Destination port in host order, code of ICMPv6, or 0.
     */
    uint16_t dport;
    /**
     * Protocol.
     */
    uint8_t proto;
} ws_tuple6;

/**
 * Route, or a change of one.
 */
typedef struct {
    /**
     * Address of the prefix in network order: 16 bytes for IPv6, the first 4 for IPv4.
     */
    uint8_t address[16];
    /**
     * Next hop, from 1. A change to 0 removes the route.
     */
    uint32_t next_hop;
    /**
     * 4 or 6.
     */
    uint8_t family;
    /**
     * Length of the prefix in bits.
     */
    uint8_t depth;
} ws_route;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Message of this thread's last call that failed, or NULL if none has. It stays valid until another call of
 * this thread fails, or the thread ends.
 */
const char *ws_last_error(void);

/**
 * Version of the library, such as "0.1.0".
 */
const char *ws_version(void);

/**
 * Makes a table without names.
 */
ws_names *ws_names_new(const ws_options *options);

/**
 * Makes a table of a file: an image that ws_names_save or lookupctl names build wrote, names in any form
 * with their results, or a list of domains: a hosts file, an Adblock list, a configuration of dnsmasq, a
 * response policy zone or the Public Suffix List. The content says which. The results of names and the
 * values of a list are labels. An exception of a list has the result 0, like a name that is not listed.
 */
ws_names *ws_names_open(const char *path,
                        const ws_options *options);

/**
 * Frees a table, or does nothing with NULL.
 */
void ws_names_free(ws_names *names);

/**
 * Writes the number of names to count.
 */
ws_status ws_names_len(const ws_names *names, size_t *count);

/**
 * Inserts a name of a ws_name_form, or replaces the result of an equal name. The result is from 1 to
 * UINT32_MAX; in a table with labels it is the number of a label.
 */
ws_status ws_names_insert(const ws_names *names,
                          uint32_t form,
                          const char *name,
                          uint64_t result);

/**
 * Inserts a name of a ws_name_form with a label. Fails if the table has names with numbers of the caller's
 * own.
 */
ws_status ws_names_insert_label(const ws_names *names,
                                uint32_t form,
                                const char *name,
                                const char *label);

/**
 * Removes a name of a ws_name_form. It is no error if it is not there.
 */
ws_status ws_names_remove(const ws_names *names, uint32_t form, const char *name);

/**
 * Makes count changes of names of one ws_name_form, in order: all or, if it fails, none. Readers see them at
 * once.
 */
ws_status ws_names_apply(const ws_names *names,
                         uint32_t form,
                         const ws_name_change *changes,
                         size_t count);

/**
 * Replaces all names by those of a file of names or an image of them, in one step. The form of the names is
 * recognised by content. Fails if the table has names with numbers of the caller's own, and for a list of
 * domains. Labels keep their numbers.
 */
ws_status ws_names_load(const ws_names *names,
                        const char *path);

/**
 * Saves the table as an image file, with its names and labels. An existing file is replaced as a whole or
 * not at all.
 */
ws_status ws_names_save(const ws_names *names,
                        const char *path);

/**
 * Lets labels end that no name leads to: see ws_table_forget_labels.
 */
ws_status ws_names_forget_labels(const ws_names *names);

/**
 * Makes a reader of a table. It sees all later changes.
 */
ws_name_reader *ws_names_reader(const ws_names *names);

/**
 * Opens an image file of names or of a list of domains for lookups alone. Memory holds one copy of the
 * table.
 */
ws_name_reader *ws_name_reader_open(const char *path);

/**
 * Frees a reader, or does nothing with NULL.
 */
void ws_name_reader_free(ws_name_reader *reader);

/**
 * Looks up count names of a ws_name_form, and writes their results, 0 where no prefix matches. The batch
 * sees one state of the table. A text that is no name makes the call fail; the message has its place.
 */
ws_status ws_lookup_names_bulk(const ws_name_reader *reader,
                               uint32_t form,
                               const char *const *names,
                               uint64_t *results,
                               size_t count);

/**
 * Label of a result, or NULL if it has none: see ws_reader_label.
 */
const char *ws_name_reader_label(const ws_name_reader *reader, uint64_t result);

/**
 * Writes the value of a field of a result's label: see ws_reader_label_field.
 */
ws_status ws_name_reader_label_field(const ws_name_reader *reader,
                                     uint64_t result,
                                     const char *field,
                                     char *value,
                                     size_t size,
                                     size_t *length);

/**
 * Writes the registrable domain of a domain, by a table of the Public Suffix List: example.co.uk of
 * www.example.co.uk. At most size bytes are written to value, with the zero that ends them; length gets the
 * bytes of the whole text without that zero, 0 for a public suffix itself and for an IP address. Fails if
 * the names are not a list of public suffixes.
 */
ws_status ws_name_reader_registrable(const ws_name_reader *reader,
                                     const char *domain,
                                     char *value,
                                     size_t size,
                                     size_t *length);

/**
 * Opens an image file that ws_table_save or lookupctl build wrote, for lookups alone. Memory holds one copy
 * of the table.
 */
ws_reader *ws_reader_open(const char *path);

/**
 * Frees a reader, or does nothing with NULL.
 */
void ws_reader_free(ws_reader *reader);

/**
 * Looks up count IPv4 addresses in host order, and writes their next hops, 0 where no prefix matches: as
 * rte_fib_lookup_bulk. The batch sees one state of the table. Batches of 1,000 and more are fastest.
 */
ws_status ws_lookup_bulk(const ws_reader *reader,
                         const uint32_t *addresses,
                         uint64_t *next_hops,
                         size_t count);

/**
 * Looks up like ws_lookup_bulk, and writes numbers of 32 bits.
 */
ws_status ws_lookup_bulk32(const ws_reader *reader,
                           const uint32_t *addresses,
                           uint32_t *next_hops,
                           size_t count);

/**
 * Looks up count IPv6 addresses of 16 bytes each in network order, like ws_lookup_bulk and as
 * rte_fib6_lookup_bulk. An IPv4-mapped address is an IPv6 address.
 */
ws_status ws_lookup6_bulk(const ws_reader *reader,
                          const uint8_t (*addresses)[16],
                          uint64_t *next_hops,
                          size_t count);

/**
 * Looks up IPv4 addresses like ws_lookup_bulk, and writes the length of each matched prefix to depths, 0
 * where none matches. Fails if the table was made without prefix_lookups.
 */
ws_status ws_lookup_prefix_bulk(const ws_reader *reader,
                                const uint32_t *addresses,
                                uint64_t *next_hops,
                                uint8_t *depths,
                                size_t count);

/**
 * Looks up IPv6 addresses like ws_lookup6_bulk, and writes lengths like ws_lookup_prefix_bulk.
 */
ws_status ws_lookup6_prefix_bulk(const ws_reader *reader,
                                 const uint8_t (*addresses)[16],
                                 uint64_t *next_hops,
                                 uint8_t *depths,
                                 size_t count);

/**
 * Looks up one IPv4 address in host order.
 */
ws_status ws_lookup(const ws_reader *reader, uint32_t address, uint64_t *next_hop);

/**
 * Label of a next hop, or NULL if it has none. The text stays until the table and all its readers are freed,
 * or the label ends by ws_table_forget_labels.
 */
const char *ws_reader_label(const ws_reader *reader,
                            uint64_t next_hop);

/**
 * Writes the value of a field of a next hop's label, where labels are records such as asn=64496,country=DE:
 * of CSV with several columns, a MaxMind DB, ranges of clouds, or merged sources. At most size bytes are
 * written to value, with the zero that ends them; length gets the bytes of the whole value without that
 * zero, 0 for a label that lacks the field and for a next hop without a label. Fails if no label of the
 * table has the field; the message lists those that are there.
 */
ws_status ws_reader_label_field(const ws_reader *reader,
                                uint64_t next_hop,
                                const char *field,
                                char *value,
                                size_t size,
                                size_t *length);

/**
 * Makes a set without rules, for packets of a ws_tuple.
 */
ws_rules *ws_rules_new(uint32_t tuple, const ws_options *options);

/**
 * Makes a set of a file, for packets of a ws_tuple: an image that ws_rules_save or lookupctl classify build
 * wrote, or rules in any format that lookupctl reads, recognised by content. Actions are labels. A rule that
 * header fields don't decide makes the call fail, unless options.assume decides it.
 */
ws_rules *ws_rules_open(const char *path,
                        uint32_t tuple,
                        const ws_options *options);

/**
 * Frees a set, or does nothing with NULL.
 */
void ws_rules_free(ws_rules *rules);

/**
 * Writes the number of rules to count.
 */
ws_status ws_rules_len(const ws_rules *rules, size_t *count);

/**
 * Inserts a rule after all others, and writes its number, from 1, to number. The rule is written as text:
 * "src=10.0.0.0/8 dport=443 proto=tcp priority=10 action=3". In a set with labels its action is the number
 * of a label, or left out.
 */
ws_status ws_rules_insert(const ws_rules *rules,
                          const char *rule,
                          uint32_t *number);

/**
 * Inserts a rule without action like ws_rules_insert, with a label as action. Fails if the set has actions
 * with numbers of the caller's own.
 */
ws_status ws_rules_insert_label(const ws_rules *rules,
                                const char *rule,
                                const char *label,
                                uint32_t *number);

/**
 * Removes a rule by its number. It is no error if there is none.
 */
ws_status ws_rules_remove(const ws_rules *rules, uint32_t number);

/**
 * Makes count changes in order: all or, if it fails, none. Readers see them at once.
 */
ws_status ws_rules_apply(const ws_rules *rules, const ws_rule_change *changes, size_t count);

/**
 * Replaces all rules by those of a file, as ws_rules_open reads it, in one step. Numbers then belong to
 * other rules. Fails if the set has actions with numbers of the caller's own. Labels keep their numbers.
 */
ws_status ws_rules_load(const ws_rules *rules,
                        const char *path);

/**
 * Saves the rules as an image file, with their labels. An existing file is replaced as a whole or not at
 * all.
 */
ws_status ws_rules_save(const ws_rules *rules,
                        const char *path);

/**
 * Lets labels end that no rule has as action: see ws_table_forget_labels.
 */
ws_status ws_rules_forget_labels(const ws_rules *rules);

/**
 * Makes a reader of a set. It sees all later changes.
 */
ws_rule_reader *ws_rules_reader(const ws_rules *rules);

/**
 * Opens an image file of rules for packets of a ws_tuple, for lookups alone. Fails if rules that header
 * fields don't decide were left out of the image.
 */
ws_rule_reader *ws_rule_reader_open(const char *path,
                                    uint32_t tuple);

/**
 * Frees a reader, or does nothing with NULL.
 */
void ws_rule_reader_free(ws_rule_reader *reader);

/**
 * Classifies count IPv4 packets: writes the number of the best rule of each, 0 if none matches, to numbers,
 * and its action, 0 if it has none, to actions. The batch sees one state of the rules.
 */
ws_status ws_classify_bulk(const ws_rule_reader *reader,
                           const ws_tuple4 *tuples,
                           uint32_t *numbers,
                           uint32_t *actions,
                           size_t count);

/**
 * Classifies count IPv6 packets like ws_classify_bulk.
 */
ws_status ws_classify6_bulk(const ws_rule_reader *reader,
                            const ws_tuple6 *tuples,
                            uint32_t *numbers,
                            uint32_t *actions,
                            size_t count);

/**
 * Label of an action, or NULL if it has none: see ws_reader_label.
 */
const char *ws_rule_reader_label(const ws_rule_reader *reader, uint64_t action);

/**
 * Makes a table without routes.
 */
ws_table *ws_table_new(const ws_options *options);

/**
 * Makes a table of count routes. Of several routes of one prefix the last one counts.
 */
ws_table *ws_table_from_routes(const ws_route *routes, size_t count, const ws_options *options);

/**
 * Makes a table of a file: an image that ws_table_save or lookupctl build wrote, or routes in any format
 * that lookupctl reads, recognised by content. The next hops of routes are labels, numbered from 1 in the
 * order in which they appear: the text "7" may have the number 1.
 */
ws_table *ws_table_open(const char *path,
                        const ws_options *options);

/**
 * Makes a table of count sources that are merged. A source is a text NAME=FILE or NAME:COLUMN,COLUMN=FILE: a
 * file of routes, the field of its values if they have no names or are a list, and the columns to take. The
 * labels are records such as asn=64496,country=DE. Each field of an address comes from the longest prefix
 * that has it, of all sources, and where several have it at one prefix, from the first of them. See
 * ws_reader_label_field.
 */
ws_table *ws_table_open_merged(const char *const *sources, size_t count, const ws_options *options);

/**
 * Frees a table, or does nothing with NULL.
 */
void ws_table_free(ws_table *table);

/**
 * Writes the number of routes to count.
 */
ws_status ws_table_len(const ws_table *table, size_t *count);

/**
 * Inserts a route of IPv4, or replaces that of an equal prefix, as rte_fib_add does. The address is in host
 * order, the next hop is from 1 to UINT32_MAX - 1. In a table with labels it is the number of a label.
 */
ws_status ws_table_insert4(const ws_table *table,
                           uint32_t address,
                           uint8_t depth,
                           uint64_t next_hop);

/**
 * Inserts a route of IPv6, or replaces that of an equal prefix: see ws_table_insert4. The address has 16
 * bytes in network order.
 */
ws_status ws_table_insert6(const ws_table *table,
                           const uint8_t *address,
                           uint8_t depth,
                           uint64_t next_hop);

/**
 * Inserts a route that is written as text, such as "10.0.0.0/8" or "2001:db8::/32", with a label. Fails if
 * the table has routes with numbers of the caller's own.
 */
ws_status ws_table_insert_label(const ws_table *table,
                                const char *prefix,
                                const char *label);

/**
 * Removes a route of IPv4. It is no error if there is none. The address is in host order.
 */
ws_status ws_table_remove4(const ws_table *table, uint32_t address, uint8_t depth);

/**
 * Removes a route of IPv6. It is no error if there is none. The address has 16 bytes in network order.
 */
ws_status ws_table_remove6(const ws_table *table,
                           const uint8_t *address,
                           uint8_t depth);

/**
 * Makes count changes in order: all or, if it fails, none. Readers see all changes of a family at once. One
 * call with many changes costs much less than a call for each.
 */
ws_status ws_table_apply(const ws_table *table,
                         const ws_route *changes,
                         size_t count);

/**
 * Replaces all routes by those of a file, as ws_table_open reads it, in one step for the readers of a
 * family. Fails if the table has routes with numbers of the caller's own. Labels keep their numbers.
 */
ws_status ws_table_load(const ws_table *table,
                        const char *path);

/**
 * Saves the table as an image file, with its routes and labels. An existing file is replaced as a whole or
 * not at all.
 */
ws_status ws_table_save(const ws_table *table,
                        const char *path);

/**
 * Lets labels end that no route leads to: their numbers may be given to other labels, and their texts are
 * freed. A program whose labels change without end calls it now and then, at a moment when no thread holds a
 * number or a text of this table or its readers.
 */
ws_status ws_table_forget_labels(const ws_table *table);

/**
 * Makes a reader of a table. It sees all later changes.
 */
ws_reader *ws_table_reader(const ws_table *table);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WIRESPEED_H */
