/* Event text to attributes, on machines made of files. */
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <stdlib.h>

#include "base/util.h"
#include "events-fixture.h"
#include "events/names.h"
#include "harness/tap.h"

TEST(generic_names_and_aliases)
{
	struct fixture f;

	fixture_make(&f, fake_root_intel, NULL, false, false);
	for (unsigned i = 0; i < generic_events_len; i++) {
		const struct generic_event *g = &generic_events[i];

		EXPECT_INT(fixture_parse(&f, g->name), 0);
		EXPECT_INT(f.list.events.len, 1);
		EXPECT_INT(fixture_at(&f, 0)->attr.type, g->type);
		if (g->kind != EVENT_TOOL)
			EXPECT_INT(fixture_at(&f, 0)->attr.config, g->config);
		EXPECT_STR(fixture_at(&f, 0)->name, g->name);
		if (g->alias) {
			EXPECT_INT(fixture_parse(&f, g->alias), 0);
			EXPECT_INT(fixture_at(&f, 0)->attr.config, g->config);
			EXPECT_STR(fixture_at(&f, 0)->name, g->alias);
		}
	}
	EXPECT_INT(fixture_parse(&f, "duration_time"), 0);
	EXPECT_INT(fixture_at(&f, 0)->tool, TOOL_DURATION_TIME);
	EXPECT_STR(fixture_at(&f, 0)->unit, "ns");
	fixture_remove(&f);
}

TEST(every_cache_name_in_every_spelling)
{
	static const char *const caches[] = {"L1-dcache", "l1d",    "L1-icache", "l1-i",
					     "LLC",       "L2",     "dTLB",      "d-tlb",
					     "iTLB",      "branch", "bpu",       "node"};
	static const uint64_t codes[] = {0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 5, 6};
	static const char *const ops[] = {"load",     "loads",      "read",
					  "store",    "stores",     "write",
					  "prefetch", "prefetches", "speculative-read"};
	static const uint64_t op_codes[] = {0, 0, 0, 1, 1, 1, 2, 2, 2};
	static const char *const results[] = {"refs", "access", "ops", "misses", "miss"};
	static const uint64_t result_codes[] = {0, 0, 0, 1, 1};
	uint64_t config;
	char name[128];

	for (size_t c = 0; c < ARRAY_LEN(caches); c++) {
		EXPECT_INT(cache_event_parse(caches[c], &config), 0);
		EXPECT_INT(config, codes[c]);
		for (size_t o = 0; o < ARRAY_LEN(ops); o++)
			for (size_t r = 0; r < ARRAY_LEN(results); r++) {
				uint64_t want = codes[c] | op_codes[o] << 8 | result_codes[r] << 16;

				snprintf(name, sizeof(name), "%s-%s-%s", caches[c], ops[o],
					 results[r]);
				EXPECT(cache_event_parse(name, &config) == 0 && config == want);
				snprintf(name, sizeof(name), "%s-%s-%s", caches[c], results[r],
					 ops[o]);
				EXPECT(cache_event_parse(name, &config) == 0 && config == want);
			}
	}
	EXPECT_INT(cache_event_parse("L1-dcache-load-misses", &config), 0);
	EXPECT_INT(config, 0x10000);
	EXPECT_INT(cache_event_parse("L1-dcache-load-load", &config), -ENOENT);
	EXPECT_INT(cache_event_parse("L1-dcache-", &config), -ENOENT);
	EXPECT_INT(cache_event_parse("L1-dcachex", &config), -ENOENT);
	EXPECT_INT(cache_event_parse("L3-loads", &config), -ENOENT);
	/* The canonical names round-trip. */
	for (unsigned i = 0; i < 100; i++) {
		uint64_t again;

		if (!cache_event_get(i, name, sizeof(name), &config))
			break;
		EXPECT(cache_event_parse(name, &again) == 0 && again == config);
	}
}

TEST(levels_follow_perf)
{
	static const struct {
		const char *text;
		int user, kernel, hv, guest, host, idle, precise;
	} rows[] = {
		{"cycles", 0, 0, 0, 1, 0, 0, 0},
		{"cycles:u", 0, 1, 1, 1, 0, 0, 0},
		{"cycles:k", 1, 0, 1, 1, 0, 0, 0},
		{"cycles:h", 1, 1, 0, 1, 0, 0, 0},
		{"cycles:uk", 0, 0, 1, 1, 0, 0, 0},
		{"cycles:ukh", 0, 0, 0, 1, 0, 0, 0},
		{"cycles:G", 0, 0, 0, 0, 1, 0, 0},
		{"cycles:H", 0, 0, 0, 1, 0, 0, 0},
		{"cycles:GH", 0, 0, 0, 0, 0, 0, 0},
		{"cycles:uG", 0, 1, 1, 0, 1, 0, 0},
		{"cycles:I", 0, 0, 0, 1, 0, 1, 0},
		{"cycles:p", 0, 0, 0, 1, 0, 0, 1},
		{"cycles:ppp", 0, 0, 0, 1, 0, 0, 3},
		{"cycles:upp", 0, 1, 1, 1, 0, 0, 2},
		{"cycles:P", 0, 0, 0, 1, 0, 0, 3},
		{"task-clock:u", 0, 1, 1, 0, 0, 0, 0},
		{"r1a8:k", 1, 0, 1, 1, 0, 0, 0},
		{"L1-dcache-loads:u", 0, 1, 1, 1, 0, 0, 0},
		{"sched:sched_switch:u", 0, 1, 1, 0, 0, 0, 0},
		{"cpu/event=0x3c/u", 0, 1, 1, 1, 0, 0, 0},
		{"cpu/event=0x3c/:k", 1, 0, 1, 1, 0, 0, 0},
		{"msr/tsc/", 0, 0, 0, 0, 0, 0, 0},
		{"power/energy-pkg/", 0, 0, 0, 0, 0, 0, 0},
	};
	struct fixture f;

	fixture_make(&f, fake_root_intel, NULL, false, false);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct perf_event_attr *attr;

		if (!EXPECT(fixture_parse(&f, rows[i].text) == 0 && f.list.events.len == 1))
			continue;
		attr = &fixture_at(&f, 0)->attr;
		tap_expect(attr->exclude_user == rows[i].user &&
				   attr->exclude_kernel == rows[i].kernel &&
				   attr->exclude_hv == rows[i].hv &&
				   attr->exclude_guest == rows[i].guest &&
				   attr->exclude_host == rows[i].host &&
				   attr->exclude_idle == rows[i].idle &&
				   attr->precise_ip == rows[i].precise,
			   __FILE__, __LINE__, "bits of %s", rows[i].text);
		EXPECT_STR(fixture_at(&f, 0)->name, rows[i].text);
	}
	fixture_remove(&f);
}

TEST(groups_and_their_modifiers)
{
	struct fixture f;

	fixture_make(&f, fake_root_intel, NULL, false, false);
	EXPECT_INT(fixture_parse(
			   &f,
			   "{cycles,instructions:u}:S, task-clock ,{ branches , branch-misses }:D"),
		   0);
	ASSERT(f.list.events.len == 5);
	EXPECT_INT(f.list.groups, 2);
	EXPECT(fixture_at(&f, 0)->leader && fixture_at(&f, 0)->group == 0 &&
	       fixture_at(&f, 0)->sample_read);
	EXPECT(!fixture_at(&f, 1)->leader && fixture_at(&f, 1)->group == 0 &&
	       fixture_at(&f, 1)->sample_read);
	EXPECT(fixture_at(&f, 1)->attr.exclude_kernel && !fixture_at(&f, 0)->attr.exclude_kernel);
	EXPECT(fixture_at(&f, 2)->leader && fixture_at(&f, 2)->group == -1);
	EXPECT(fixture_at(&f, 3)->leader && fixture_at(&f, 3)->group == 1 &&
	       fixture_at(&f, 3)->attr.pinned);
	EXPECT(!fixture_at(&f, 4)->leader && !fixture_at(&f, 4)->attr.pinned);
	EXPECT_INT(fixture_at(&f, 4)->origin, 4);

	EXPECT_INT(fixture_parse(&f, "{cycles,instructions}:W,{r1,r2}:e,{r3}:ku"), 0);
	EXPECT(fixture_at(&f, 0)->weak && !fixture_at(&f, 1)->weak);
	EXPECT(fixture_at(&f, 2)->attr.exclusive && !fixture_at(&f, 3)->attr.exclusive);
	EXPECT(!fixture_at(&f, 4)->attr.exclude_kernel && !fixture_at(&f, 4)->attr.exclude_user &&
	       fixture_at(&f, 4)->attr.exclude_hv);
	EXPECT_INT(fixture_parse(&f, "mine:{cycles,instructions}"), 0);
	EXPECT_INT(f.list.events.len, 2);

	/* A group over a wildcard, and appending to a list. */
	EXPECT_INT(fixture_parse(&f, "{sched:*}"), 0);
	EXPECT_INT(f.list.events.len, 3);
	EXPECT(fixture_at(&f, 0)->leader && !fixture_at(&f, 2)->leader &&
	       fixture_at(&f, 2)->group == 0);
	EXPECT_INT(events_parse("{cycles,faults}", f.env, &f.list, &f.err), 0);
	EXPECT(f.list.events.len == 5 && fixture_at(&f, 3)->leader &&
	       fixture_at(&f, 3)->group == 1);
	EXPECT_INT(fixture_at(&f, 3)->origin, 1);
	/* A failure leaves the list as it was. */
	EXPECT_INT(events_parse("cycles,{faults,nonsense}", f.env, &f.list, &f.err), -ENOENT);
	EXPECT(f.list.events.len == 5 && f.list.groups == 2 && f.list.origins == 3);
	fixture_remove(&f);
}

TEST(pmu_terms)
{
	struct fixture f;

	fixture_make(&f, fake_root_intel, NULL, false, false);
	EXPECT_INT(fixture_parse(&f, "cpu/event=0xd1,umask=0x08,name=l1_hit,period=1000003/u"), 0);
	EXPECT_INT(fixture_at(&f, 0)->attr.type, 4);
	EXPECT_INT(fixture_at(&f, 0)->attr.config, 0x8d1);
	EXPECT_INT(fixture_at(&f, 0)->attr.sample_period, 1000003);
	EXPECT_INT(fixture_at(&f, 0)->attr.freq, 0);
	EXPECT_STR(fixture_at(&f, 0)->name, "l1_hit");
	EXPECT_STR(fixture_at(&f, 0)->pmu, "cpu");
	EXPECT_INT(fixture_parse(&f, "cpu/event=0xc3,cmask=1,edge,inv=1,freq=99/"), 0);
	EXPECT_INT(fixture_at(&f, 0)->attr.config, 0x18400c3);
	EXPECT(fixture_at(&f, 0)->attr.freq && fixture_at(&f, 0)->attr.sample_freq == 99);
	EXPECT_INT(fixture_parse(&f, "cpu/event=0xb7,umask=1,offcore_rsp=0x801C0003/"), 0);
	EXPECT_INT(fixture_at(&f, 0)->attr.config1, 0x801c0003);
	EXPECT_INT(fixture_parse(&f, "cpu/config=0x1b1,config1=7,config2=0x9/"), 0);
	EXPECT(fixture_at(&f, 0)->attr.config == 0x1b1 && fixture_at(&f, 0)->attr.config1 == 7 &&
	       fixture_at(&f, 0)->attr.config2 == 9);
	EXPECT_INT(fixture_parse(&f, "cpu/mem-loads/"), 0);
	EXPECT(fixture_at(&f, 0)->attr.config == 0x1cd && fixture_at(&f, 0)->attr.config1 == 3);
	EXPECT_INT(fixture_parse(&f, "cpu/mem-loads,ldlat=30/pp"), 0);
	EXPECT(fixture_at(&f, 0)->attr.config1 == 30 && fixture_at(&f, 0)->attr.precise_ip == 2);
	EXPECT_STR(fixture_at(&f, 0)->name, "cpu/mem-loads,ldlat=30/pp");
	EXPECT_INT(fixture_parse(&f, "cpu/name='a,b/c=1',event=1/"), 0);
	EXPECT_STR(fixture_at(&f, 0)->name, "a,b/c=1");
	EXPECT_INT(fixture_parse(&f, "cpu/r1a8/,cpu/cycles/,cpu/L1-dcache-loads/"), 0);
	EXPECT_INT(fixture_at(&f, 0)->attr.config, 0x1a8);
	EXPECT(fixture_at(&f, 1)->attr.type == PERF_TYPE_HARDWARE &&
	       fixture_at(&f, 1)->attr.config == 0);
	EXPECT_INT(fixture_at(&f, 2)->attr.type, PERF_TYPE_HW_CACHE);
	EXPECT_INT(fixture_parse(&f, "cpu/"
				     "event=1,call-graph=dwarf,stack-size=8192,max-stack=64,no-"
				     "inherit,percore/"),
		   0);
	EXPECT_STR(fixture_at(&f, 0)->callgraph, "dwarf");
	EXPECT(fixture_at(&f, 0)->attr.sample_stack_user == 8192 &&
	       fixture_at(&f, 0)->attr.sample_max_stack == 64);
	EXPECT(fixture_at(&f, 0)->inherit == 0 && fixture_at(&f, 0)->percore);
	EXPECT_INT(fixture_parse(&f, "cpu//"), 0);
	EXPECT_INT(fixture_at(&f, 0)->attr.config, 0);
	/* Split ranges, in config and config2. */
	EXPECT_INT(fixture_parse(&f, "uncore_imc_0/event=4,umask=0x12345678/"), 0);
	EXPECT_INT(fixture_at(&f, 0)->attr.config, 0x0012345600007804);
	EXPECT_INT(fixture_parse(&f, "hv_24x7/PM_CYC,core=2,split=0xa5/"), 0);
	EXPECT(fixture_at(&f, 0)->attr.config == 0x20001 &&
	       fixture_at(&f, 0)->attr.config2 == (0xaull << 60 | 5));
	fixture_remove(&f);
}

TEST(sysfs_names_scales_and_instances)
{
	struct fixture f;

	fixture_make(&f, fake_root_intel, NULL, false, false);
	EXPECT_INT(fixture_parse(&f, "topdown-retiring,slots:u"), 0);
	EXPECT(fixture_at(&f, 0)->attr.type == 4 && fixture_at(&f, 0)->attr.config == 0x8000);
	EXPECT(fixture_at(&f, 1)->attr.config == 0x400 && fixture_at(&f, 1)->attr.exclude_kernel);
	EXPECT_INT(fixture_at(&f, 0)->kind, EVENT_PMU);
	EXPECT_INT(fixture_parse(&f, "power/energy-pkg/,energy-pkg"), 0);
	EXPECT(fixture_at(&f, 0)->uncore && fixture_at(&f, 0)->cpus &&
	       cpuset_count(fixture_at(&f, 0)->cpus) == 1);
	EXPECT_NEAR(fixture_at(&f, 1)->scale, 2.3283064365386962890625e-10, 1e-25);
	EXPECT_STR(fixture_at(&f, 1)->unit, "Joules");
	/* The free-running PMU is another one; one event per instance. */
	EXPECT_INT(fixture_parse(&f, "uncore_imc/cas_count_read/"), 0);
	EXPECT_INT(f.list.events.len, 2);
	EXPECT(fixture_at(&f, 0)->attr.type == 20 && fixture_at(&f, 1)->attr.type == 21);
	EXPECT(fixture_at(&f, 0)->origin == fixture_at(&f, 1)->origin);
	EXPECT_STR(fixture_at(&f, 1)->name, "uncore_imc/cas_count_read/");
	EXPECT_STR(fixture_at(&f, 0)->unit, "MiB");
	EXPECT_INT(fixture_parse(&f, "imc/cas_count_read/,uncore_imc_?/event=1/,cas_count_read"),
		   0);
	EXPECT_INT(f.list.events.len, 6);
	EXPECT_INT(fixture_parse(&f, "uncore_imc_1/cas_count_read/"), 0);
	EXPECT_INT(f.list.events.len, 1);
	EXPECT_INT(fixture_parse(&f, "msr/tsc/"), 0);
	EXPECT(!fixture_at(&f, 0)->uncore && !fixture_at(&f, 0)->cpus &&
	       fixture_at(&f, 0)->attr.type == 24);
	fixture_remove(&f);
}

/* gem5#1064: an event bound to the P-cores read 0 on E-cores: it is opened on every kind. */
TEST(failure_31_hybrid_opens_on_every_kind_of_core)
{
	struct fixture f;

	fixture_make(&f, fake_root_hybrid, NULL, false, false);
	EXPECT_INT(fixture_parse(&f, "cycles:u"), 0);
	ASSERT(f.list.events.len == 2);
	EXPECT_STR(fixture_at(&f, 0)->name, "cpu_core/cycles/u");
	EXPECT_STR(fixture_at(&f, 1)->name, "cpu_atom/cycles/u");
	EXPECT(fixture_at(&f, 0)->attr.type == 0 && fixture_at(&f, 0)->attr.config == 4ull << 32);
	EXPECT(fixture_at(&f, 1)->attr.type == 0 && fixture_at(&f, 1)->attr.config == 10ull << 32);
	EXPECT(fixture_at(&f, 1)->partial && fixture_at(&f, 1)->cpus &&
	       cpuset_has(fixture_at(&f, 1)->cpus, 4) && !cpuset_has(fixture_at(&f, 1)->cpus, 3));
	EXPECT_INT(fixture_parse(&f, "L1-dcache-load-misses"), 0);
	EXPECT_INT(fixture_at(&f, 1)->attr.config, 10ull << 32 | 0x10000);
	EXPECT_INT(fixture_parse(&f, "r3c"), 0);
	EXPECT(fixture_at(&f, 0)->attr.type == 4 && fixture_at(&f, 1)->attr.type == 10 &&
	       fixture_at(&f, 1)->attr.config == 0x3c);
	EXPECT_INT(fixture_parse(&f, "cpu_core/cycles/,cpu_atom/event=0x3c/,cpu_atom/LLC-loads/"),
		   0);
	EXPECT_INT(f.list.events.len, 3);
	EXPECT_INT(fixture_at(&f, 0)->attr.config, 4ull << 32);
	EXPECT(fixture_at(&f, 1)->attr.type == 10 && fixture_at(&f, 1)->attr.config == 0x3c);
	EXPECT_INT(fixture_at(&f, 2)->attr.config, 10ull << 32 | 2);
	EXPECT_INT(fixture_parse(&f, "cpu/event=0x3c/,mem-loads"), 0);
	EXPECT_INT(f.list.events.len, 4);
	EXPECT_STR(fixture_at(&f, 3)->name, "cpu_atom/mem-loads/");
	EXPECT_INT(fixture_parse(&f, "{cpu_core/slots/,cpu_core/topdown-retiring/}"), 0);
	EXPECT_INT(f.list.events.len, 2);
	fixture_remove(&f);
}

TEST(arm_machines)
{
	struct fixture f;

	fixture_make(&f, fake_root_arm, NULL, false, false);
	EXPECT_INT(
		fixture_parse(
			&f,
			"cycles,stall_slot,armv8_pmuv3_0/event=0x23/,armv8_pmuv3/cpu_cycles,long/"),
		0);
	ASSERT(f.list.events.len == 4);
	EXPECT(!fixture_at(&f, 0)->partial && fixture_at(&f, 0)->attr.config == 0);
	EXPECT(fixture_at(&f, 1)->attr.type == 8 && fixture_at(&f, 1)->attr.config == 0x3f &&
	       !fixture_at(&f, 1)->cpus);
	EXPECT_INT(fixture_at(&f, 2)->attr.config, 0x23);
	EXPECT(fixture_at(&f, 3)->attr.config == 0x11 && fixture_at(&f, 3)->attr.config1 == 1);
	fixture_remove(&f);
}

TEST(tracepoints_and_filters)
{
	struct fixture f;

	fixture_make(&f, fake_root_intel, NULL, false, false);
	EXPECT_INT(fixture_parse(&f, "sched:sched_switch,irq:*,s*d:sched_wak*:u"), 0);
	ASSERT(f.list.events.len == 4);
	EXPECT(fixture_at(&f, 0)->attr.type == PERF_TYPE_TRACEPOINT &&
	       fixture_at(&f, 0)->attr.config == 316);
	EXPECT_STR(fixture_at(&f, 1)->name, "irq:irq_handler_entry");
	EXPECT_STR(fixture_at(&f, 2)->name, "sched:sched_wakeup:u");
	EXPECT(fixture_at(&f, 3)->origin == 2 && fixture_at(&f, 3)->attr.exclude_kernel);
	EXPECT_INT(event_list_add_filter(&f.list, "pid == 1", &f.err), 0);
	EXPECT(!fixture_at(&f, 1)->filter);
	EXPECT_STR(fixture_at(&f, 2)->filter, "pid == 1");
	EXPECT_INT(event_list_add_filter(&f.list, "prio < 5", &f.err), 0);
	EXPECT_STR(fixture_at(&f, 3)->filter, "(pid == 1) && (prio < 5)");
	EXPECT_INT(fixture_parse(&f, "*:*"), 0); /* ftrace:function has no id and is left out */
	EXPECT_INT(f.list.events.len, 4);
	EXPECT_INT(fixture_parse(&f, "cycles"), 0);
	EXPECT_INT(event_list_add_filter(&f.list, "pid == 1", &f.err), -EINVAL);
	EXPECT_INT(fixture_parse(&f, "nothing:*"), -ENOENT);
	EXPECT(strstr(f.err.text, "no tracepoint matches"));
	fixture_remove(&f);
}

TEST(breakpoints_and_numbers)
{
	struct fixture f;

	fixture_make(&f, fake_root_intel, NULL, false, false);
	EXPECT_INT(fixture_parse(&f,
				 "mem:0x1000,mem:0x2000/8:w,mem:4096:x:u,mem:0x30:rw:k,mem:0x40:u"),
		   0);
	ASSERT(f.list.events.len == 5);
	EXPECT(fixture_at(&f, 0)->attr.type == PERF_TYPE_BREAKPOINT &&
	       fixture_at(&f, 0)->attr.bp_addr == 0x1000);
	EXPECT(fixture_at(&f, 0)->attr.bp_len == 4 &&
	       fixture_at(&f, 0)->attr.bp_type == HW_BREAKPOINT_RW);
	EXPECT(fixture_at(&f, 1)->attr.bp_len == 8 &&
	       fixture_at(&f, 1)->attr.bp_type == HW_BREAKPOINT_W);
	EXPECT(fixture_at(&f, 2)->attr.bp_addr == 4096 &&
	       fixture_at(&f, 2)->attr.bp_type == HW_BREAKPOINT_X);
	EXPECT(fixture_at(&f, 2)->attr.bp_len == sizeof(long) &&
	       fixture_at(&f, 2)->attr.exclude_kernel);
	EXPECT(fixture_at(&f, 3)->attr.exclude_user && fixture_at(&f, 4)->attr.exclude_kernel);
	EXPECT_INT(fixture_parse(&f, "r1a8,rFFFFFFFFFFFFFFFF,4:0x3c:u,1:2"), 0);
	ASSERT(f.list.events.len == 4);
	EXPECT(fixture_at(&f, 0)->attr.type == PERF_TYPE_RAW &&
	       fixture_at(&f, 0)->attr.config == 0x1a8);
	EXPECT(fixture_at(&f, 1)->attr.config == UINT64_MAX);
	EXPECT(fixture_at(&f, 2)->attr.type == 4 && fixture_at(&f, 2)->attr.config == 0x3c &&
	       fixture_at(&f, 2)->attr.exclude_kernel);
	EXPECT(fixture_at(&f, 3)->attr.type == 1 && fixture_at(&f, 3)->attr.config == 2);
	fixture_remove(&f);
}

TEST(errors_name_the_place_and_what_was_expected)
{
	static const struct {
		const char *text, *words;
		int code;
	} rows[] = {
		{"", "character 1: expected an event", -EINVAL},
		{"cycles,", "character 8: expected an event", -EINVAL},
		{",cycles", "character 1: expected an event", -EINVAL},
		{"cycles,,faults", "character 8: expected an event", -EINVAL},
		{"{cycles,faults",
		 "character 15: expected ',' or the '}' of the group opened at character 1",
		 -EINVAL},
		{"{cycles,{faults}}", "character 9: a group may not stand inside a group", -EINVAL},
		{"cycles}", "character 7: expected ',' or the end", -EINVAL},
		{"{cycles}:", "character 10: expected modifiers", -EINVAL},
		{"{cycles}:uz", "character 11: 'z' is no modifier", -EINVAL},
		{"{cycles}x", "character 9: expected ',' or the end", -EINVAL},
		{"cycles:W", "W belongs behind a group", -EINVAL},
		{"cycles:pppp", "more than three p", -EINVAL},
		{"cycles:uq", "character 8: expected modifiers", -EINVAL},
		{"cpu/event=0xd1", "character 15: expected '/'", -EINVAL},
		{"cpu/event=0x1g/", "character 5: 'event': expected a number", -EINVAL},
		{"cpu/event=/", "character 5: 'event': expected a number", -EINVAL},
		{"cpu/event=1,umask=0x100/",
		 "character 13: 'umask': 0x100 is too large, at most 0xff", -EINVAL},
		{"cpu/event=1,,umask=1/", "character 13: '", -EINVAL},
		{"cpu/evnt=1/", "no such field or event; its fields: cmask edge event", -EINVAL},
		{"cpu/name='abc/", "the ' is never closed", -EINVAL},
		{"cpu/event=1/x", "character 13: expected modifiers", -EINVAL},
		{"cpu/period=0/", "expected at least 1", -EINVAL},
		{"cpu/call-graph=foo/", "expected fp, dwarf, lbr or no", -EINVAL},
		{"cpu/event=99999999999999999999999/", "does not fit 64 bits", -EINVAL},
		{"hv_24x7/PM_CYC/", "the event needs a value: add core=N", -EINVAL},
		{"/event=1/", "character 1: expected the name of a PMU", -EINVAL},
		{"nopmu/event=1/", "no PMU 'nopmu' on this machine; it has: cpu", -ENOENT},
		{"mem:", "character 5: expected an address", -EINVAL},
		{"mem:0x10/", "character 10: expected a length", -EINVAL},
		{"mem:0x10/9", "expected a length of 1 to 8", -EINVAL},
		{"mem:0x10:rr", "character 11: expected r, w or x, each once", -EINVAL},
		{"mem:0x10z", "expected '/', ':' or the end", -EINVAL},
		{"cyclse", "unknown event 'cyclse' (did you mean cycles", -ENOENT},
		{"task-clok:u", "unknown event 'task-clok' (did you mean task-clock", -ENOENT},
		{"topdown-retirin", "did you mean topdown-retiring", -ENOENT},
		{"sched:sched_swich", "did you mean sched:sched_switch", -ENOENT},
		{"faults,L1-dcache-lods",
		 "character 8: unknown event 'L1-dcache-lods' (did you mean L1-dcache-loads",
		 -ENOENT},
		{"rxyz", "unknown event", -ENOENT},
	};
	struct fixture f;

	fixture_make(&f, fake_root_intel, NULL, false, false);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int r = fixture_parse(&f, rows[i].text);

		tap_expect(r == rows[i].code && strstr(f.err.text, rows[i].words), __FILE__,
			   __LINE__, "'%s': %d, %s", rows[i].text, r, f.err.text);
		EXPECT_INT(f.list.events.len, 0);
	}
	fixture_remove(&f);
}

TEST(a_machine_without_counters_still_understands)
{
	struct fixture f;

	fixture_make(&f, fake_root_make, NULL, false, false);
	fake_root_file(&f.root, "/proc/cpuinfo",
		       "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nstepping\t: 1\n"
		       "flags\t\t: fpu hypervisor\n");
	EXPECT_INT(fixture_parse(&f, "cycles,cpu/event=0x1a0,umask=0x1e/"), 0);
	EXPECT(fixture_at(&f, 0)->no_pmu && fixture_at(&f, 1)->no_pmu);
	/* AMD's event select is split: bits 7:0 and 35:32. */
	EXPECT_INT(fixture_at(&f, 1)->attr.config, 0x100001ea0);
	EXPECT_INT(fixture_parse(&f, "sched:sched_switch"), -ENOENT);
	EXPECT(strstr(f.err.text, "mount -t tracefs"));
	EXPECT_INT(fixture_parse(&f, "nopmu/x/"), -ENOENT);
	EXPECT(strstr(f.err.text, "it has: none"));
	fixture_remove(&f);
}

TEST(format_fields)
{
	uint64_t mask, word = 0;
	uint8_t which;

	EXPECT_INT(pmu_format_parse("config:0-7,32-35\n", &which, &mask), 0);
	EXPECT(which == 0 && mask == 0xf000000ff);
	EXPECT_INT(pmu_format_parse("config2:63", &which, &mask), 0);
	EXPECT(which == 2 && mask == 1ull << 63);
	EXPECT_INT(pmu_format_parse("config1:0-63", &which, &mask), 0);
	EXPECT(which == 1 && mask == UINT64_MAX && pmu_format_max(mask) == UINT64_MAX);
	EXPECT_INT(pmu_format_parse("config:8-7", &which, &mask), -EINVAL);
	EXPECT_INT(pmu_format_parse("config:0-64", &which, &mask), -EINVAL);
	EXPECT_INT(pmu_format_parse("config:", &which, &mask), -EINVAL);
	EXPECT_INT(pmu_format_parse("config9:1", &which, &mask), -EINVAL);
	EXPECT_INT(pmu_format_parse("conf:1", &which, &mask), -EINVAL);
	EXPECT_INT(pmu_format_parse("config:1-", &which, &mask), -EINVAL);
	EXPECT_INT(pmu_format_deposit(0xf000000ff, 0x123, &word), 0);
	EXPECT_INT(word, 0x100000023);
	EXPECT_INT(pmu_format_deposit(0xf000000ff, 0x4, &word), 0); /* the last one wins */
	EXPECT_INT(word, 4);
	EXPECT_INT(pmu_format_deposit(0xf, 16, &word), -ERANGE);
	EXPECT_INT(word, 4);
}
