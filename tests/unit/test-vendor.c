/* Vendor names: the user's files in every layout, and libpfm4's tables. */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "events-fixture.h"
#include "events/vendor-internal.h"
#include "harness/tap.h"

static const char intel_json[] =
	"\xef\xbb\xbf{\"Header\":{\"Copyright\":\"x\",\"Nested\":[{\"EventName\":\"NOT.THIS\"}]},"
	"\"Events\":[\n"
	"{\"EventCode\":\"0xd1\",\"UMask\":\"0x08\",\"EventName\":\"MEM_LOAD_RETIRED.L1_MISS\","
	"\"BriefDescription\":\"Loads that missed "
	"L1.\",\"Counter\":\"0,1,2,3\",\"CounterMask\":\"0\","
	"\"MSRIndex\":\"0\",\"MSRValue\":\"0\",\"Deprecated\":\"0\"},\n"
	"{\"EventCode\":\"0xB7,0xBB\",\"UMask\":\"0x01\",\"EventName\":\"OFFCORE_RESPONSE.X\","
	"\"MSRIndex\":\"0x1a6,0x1a7\",\"MSRValue\":\"0x801C0003\"},\n"
	"{\"EventCode\":\"0xc3\",\"UMask\":\"0x01\",\"EventName\":\"MACHINE_CLEARS.COUNT\","
	"\"CounterMask\":\"1\",\"EdgeDetect\":\"1\",\"Invert\":\"0\",\"Deprecated\":\"1\"},\n"
	"{\"EventCode\":\"0xcd\",\"UMask\":\"0x01\",\"EventName\":\"LATENCY_GT_64\","
	"\"MSRIndex\":\"0x3F6\",\"MSRValue\":\"0x40\"},\n"
	"{\"EventCode\":198,\"UMask\":1,\"EventName\":\"FRONTEND_RETIRED.DSB_MISS\","
	"\"MSRIndex\":1015,\"MSRValue\":17},\n"
	"{\"EventName\":\"NO.CODE\"},{\"EventCode\":\"zz\",\"EventName\":\"BAD.CODE\"},\n"
	"{\"EventCode\":\"0x04\",\"UMask\":\"0x03\",\"UMaskExt\":\"0x01\",\"EventName\":\"UNC_M_"
	"CAS.RD\","
	"\"Unit\":\"iMC\"}]}";

static const char mapfile[] =
	"Family-model,Version,Filename,EventType,Core Type,Native Model ID,Core Role Name\n"
	"GenuineIntel-6-55-[01234],V1,/SKX/events/skylakex_core.json,core,,,\n"
	"GenuineIntel-6-55-[56789ABCDEF],V1,/CLX/events/clx_core.json,core,,,\n"
	"GenuineIntel-6-97,V1,/ADL/events/adl_glc.json,hybridcore,0x40,0x1,Core\n"
	"GenuineIntel-6-97,V1,/ADL/events/adl_grt.json,hybridcore,0x20,0x1,Atom\n"
	"GenuineIntel-6-55-[01234],V1,/SKX/metrics/skylakex_metrics.json,metrics,,,\n";

TEST(perfmon_files_by_mapfile)
{
	struct fixture f;

	fixture_make(&f, fake_root_intel, NULL, false, true); /* 6-55-4: a Skylake-X */
	fake_root_file(&f.files, "/mapfile.csv", mapfile);
	fake_root_file(&f.files, "/SKX/events/skylakex_core.json", intel_json);
	fake_root_file(&f.files, "/CLX/events/clx_core.json",
		       "[{\"EventCode\":\"0x1\",\"EventName\":\"CLX.ONLY\"}]");
	EXPECT_INT(fixture_parse(&f, "mem_load_retired.l1_miss:u,MEM_LOAD_RETIRED:L1_MISS"), 0);
	ASSERT(f.list.events.len == 2);
	EXPECT(fixture_at(&f, 0)->attr.config == 0x8d1 && fixture_at(&f, 0)->attr.type == 4);
	EXPECT(fixture_at(&f, 0)->attr.exclude_kernel && !fixture_at(&f, 1)->attr.exclude_kernel);
	EXPECT_INT(fixture_at(&f, 1)->attr.config, 0x8d1);
	EXPECT_INT(fixture_at(&f, 0)->kind, EVENT_VENDOR);
	EXPECT_STR(fixture_at(&f, 0)->name, "mem_load_retired.l1_miss:u");
	EXPECT_INT(fixture_parse(&f, "offcore_response.x,machine_clears.count,latency_gt_64,"
				     "frontend_retired.dsb_miss"),
		   0);
	EXPECT(fixture_at(&f, 0)->attr.config == 0x1b7 &&
	       fixture_at(&f, 0)->attr.config1 == 0x801c0003);
	EXPECT_INT(fixture_at(&f, 1)->attr.config, 0x10401c3);
	EXPECT(fixture_at(&f, 2)->attr.config == 0x1cd && fixture_at(&f, 2)->attr.config1 == 0x40);
	EXPECT(fixture_at(&f, 3)->attr.config == 0x1c6 && fixture_at(&f, 3)->attr.config1 == 17);
	/* Uncore: once per instance, the extended mask in its split field. */
	EXPECT_INT(fixture_parse(&f, "unc_m_cas.rd"), 0);
	EXPECT(f.list.events.len == 2 && fixture_at(&f, 1)->attr.type == 21 &&
	       fixture_at(&f, 0)->uncore);
	EXPECT_INT(fixture_at(&f, 0)->attr.config, 0x100000304);
	EXPECT_INT(fixture_parse(&f, "cpu/mem_load_retired.l1_miss,cmask=2/"), 0);
	EXPECT_INT(fixture_at(&f, 0)->attr.config, 0x20008d1);
	EXPECT_INT(fixture_parse(&f, "clx.only"), -ENOENT);
	EXPECT_INT(fixture_parse(&f, "not.this"), -ENOENT);
	EXPECT_INT(fixture_parse(&f, "no.code"), -ENOENT);
	EXPECT_INT(fixture_parse(&f, "mem_load_retird.l1_miss"), -ENOENT);
	EXPECT(strstr(f.err.text, "did you mean MEM_LOAD_RETIRED.L1_MISS"));
	fixture_remove(&f);

	fixture_make(&f, fake_root_intel, "clx", false, true); /* --cpu goes by the folder */
	fake_root_file(&f.files, "/mapfile.csv", mapfile);
	fake_root_file(&f.files, "/CLX/events/clx_core.json",
		       "[{\"EventCode\":\"0x1\",\"EventName\":\"CLX.ONLY\"}]");
	EXPECT_INT(fixture_parse(&f, "clx.only"), 0);
	fixture_remove(&f);
}

TEST(hybrid_files_go_to_their_cores)
{
	struct fixture f;

	fixture_make(&f, fake_root_hybrid, NULL, false, true);
	fake_root_file(&f.files, "/mapfile.csv", mapfile);
	fake_root_file(&f.files, "/ADL/events/adl_glc.json",
		       "[{\"EventCode\":\"0x11\",\"EventName\":\"P.ONLY\"},{\"EventCode\":\"0x44\","
		       "\"EventName\":\"BOTH\"}]");
	fake_root_file(&f.files, "/ADL/events/adl_grt.json",
		       "[{\"EventCode\":\"0x22\",\"EventName\":\"E.ONLY\"},{\"EventCode\":\"0x33\","
		       "\"EventName\":\"BOTH\"}]");
	EXPECT_INT(fixture_parse(&f, "p.only,e.only"), 0);
	ASSERT(f.list.events.len == 2);
	EXPECT(fixture_at(&f, 0)->attr.type == 4 && fixture_at(&f, 0)->partial);
	EXPECT(fixture_at(&f, 1)->attr.type == 10 && fixture_at(&f, 1)->attr.config == 0x22);
	EXPECT_INT(fixture_parse(&f, "both:u"), 0);
	ASSERT(f.list.events.len == 2);
	EXPECT(fixture_at(&f, 0)->attr.type == 4 && fixture_at(&f, 0)->attr.config == 0x44);
	EXPECT(fixture_at(&f, 1)->attr.type == 10 && fixture_at(&f, 1)->attr.config == 0x33);
	EXPECT_STR(fixture_at(&f, 1)->name, "cpu_atom/both/u");
	EXPECT(fixture_at(&f, 0)->origin == fixture_at(&f, 1)->origin);
	fixture_remove(&f);
}

TEST(arm_layouts_choose_by_part)
{
	struct fixture f;

	fixture_make(&f, fake_root_arm, NULL, false, true);
	fake_root_file(&f.files, "/cpu/neoverse/neoverse-n1.json",
		       "{\"document\":{\"license\":\"x\"},\"product_configuration\":{"
		       "\"implementer\":\"0x41\","
		       "\"part_num\":\"0xd0c\",\"num_slots\":0},\"events\":{\"L1D_CACHE_REFILL\":{"
		       "\"code\":"
		       "\"0x0003\",\"title\":\"L1D "
		       "refill\",\"accesses\":[\"PMU\"]}},\"metrics\":{\"x\":{}}}");
	fake_root_file(
		&f.files, "/cpu/neoverse/neoverse-v2.json",
		"{\"product_configuration\":{\"implementer\":\"0x41\",\"part_num\":\"0xd4f\"},"
		"\"events\":{\"V2_ONLY\":{\"code\":\"0x1\"}}}");
	fake_root_file(&f.files, "/old/a.json",
		       "{\"cpu\":\"A\",\"events\":[{\"code\":35,\"name\":\"STALL_FRONTEND\"}]}");
	fake_root_file(&f.files, "/broken.json", "{\"events\":[{\"code\":35,");
	EXPECT_INT(fixture_parse(&f, "l1d_cache_refill,STALL_FRONTEND:k"), 0);
	ASSERT(f.list.events.len == 2);
	EXPECT(fixture_at(&f, 0)->attr.type == 8 && fixture_at(&f, 0)->attr.config == 3);
	EXPECT(fixture_at(&f, 1)->attr.config == 0x23 && fixture_at(&f, 1)->attr.exclude_user);
	EXPECT_INT(fixture_parse(&f, "v2_only"), -ENOENT);
	fixture_remove(&f);
}

TEST(damaged_files_are_told_and_passed_over)
{
	struct vendor_files files = {0};
	struct err err = {0};

	EXPECT_INT(vendor_files_parse(&files, "{\"events\":[1,[2],{}]}", 21, "a", "", NULL, &err),
		   0);
	EXPECT_INT(
		vendor_files_parse(&files, "[{\"EventName\":\"A\"", 17, "b.json", "", NULL, &err),
		-EBADMSG);
	EXPECT(strstr(err.text, "b.json: byte 17: "));
	EXPECT_INT(vendor_files_parse(&files, "7", 1, "c.json", "", NULL, &err), -EBADMSG);
	EXPECT(strstr(err.text, "no list of events"));
	EXPECT_INT(vendor_files_parse(&files, "", 0, "d.json", "", NULL, &err), -EBADMSG);
	vendor_files_fini(&files);
}

TEST(missing_folder_and_cpu)
{
	struct event_env_options options = {.events_dir = "/proc/self/no-such-folder",
					    .no_libpfm = true};
	struct event_list list = {0};
	struct event_env *env;
	struct fixture f;
	struct err err;

	EXPECT_INT(event_env_new(&options, &env, NULL), 0);
	EXPECT_INT(events_parse("some.event", env, &list, &err), -ENOENT);
	EXPECT(strstr(err.text, "/proc/self/no-such-folder"));
	event_env_free(env);

	fixture_make(&f, fake_root_intel, NULL, false, true);
	fake_root_file(&f.files, "/mapfile.csv", "GenuineIntel-6-1E,V1,nehalem,core\n");
	EXPECT_INT(fixture_parse(&f, "some.event"), -ENOENT);
	EXPECT(strstr(f.err.text, "has no row for GenuineIntel-6-55-4"));
	fixture_remove(&f);
}

TEST(perf_layout_with_folders)
{
	struct fixture f;

	fixture_make(&f, fake_root_intel, NULL, false, true);
	fake_root_file(&f.files, "/mapfile.csv",
		       "Family-model,Version,Filename,EventType\n"
		       "GenuineIntel-6-(55|6A),v1.2,skylakex,core\n");
	fake_root_file(&f.files, "/skylakex/cache.json",
		       "[{\"BriefDescription\":\"x\",\"ConfigCode\":\"0x1b1\",\"EventName\":\"a."
		       "b\",\"Unit\":\"cpu\"}]");
	fake_root_file(&f.files, "/skylakex/skx-metrics.json",
		       "[{\"MetricName\":\"x\",\"MetricExpr\":\"a / b\"}]");
	EXPECT_INT(fixture_parse(&f, "a.b"), 0);
	EXPECT_INT(fixture_at(&f, 0)->attr.config, 0x1b1);
	fixture_remove(&f);
}

static int count_event(void *arg, const struct vendor_event *event)
{
	(*(unsigned *)arg)++;
	return event->name[0] ? 0 : -EINVAL;
}

TEST(libpfm4_names_in_both_spellings)
{
	struct fixture f;
	struct vendor *vendor;
	struct err err = {0};
	unsigned count = 0;

	fixture_make(&f, fake_root_intel, "skl", true, true);
	if (event_env_vendor(f.env, &vendor, NULL) < 0 ||
	    vendor_each(vendor, count_event, &count, &err) < 0) {
		fixture_remove(&f);
		SKIP("%s", err.text);
	}
	EXPECT(count > 300);
	EXPECT_INT(fixture_parse(&f, "MEM_LOAD_RETIRED:L1_MISS,mem_load_retired.l1_miss,"
				     "MEM_LOAD_RETIRED:L1_MISS:u"),
		   0);
	ASSERT(f.list.events.len == 3);
	for (size_t i = 0; i < 3; i++)
		EXPECT(fixture_at(&f, i)->attr.type == PERF_TYPE_RAW &&
		       fixture_at(&f, i)->attr.config == 0x8d1 &&
		       fixture_at(&f, i)->kind == EVENT_VENDOR);
	EXPECT(!fixture_at(&f, 0)->attr.exclude_kernel && fixture_at(&f, 2)->attr.exclude_kernel);
	EXPECT_INT(fixture_parse(&f, "INST_RETIRED:ANY_P:c=1"), 0);
	EXPECT_INT(fixture_at(&f, 0)->attr.config, 0x10000c0);
	EXPECT_INT(fixture_parse(&f, "MEM_LOAD_RETIRED:L1_MISSED"), -ENOENT);
	EXPECT(strstr(f.err.text, "did you mean MEM_LOAD_RETIRED:L1_MISS"));
	fixture_remove(&f);

	fixture_make(&f, fake_root_intel, "zen4", true, true);
	EXPECT_INT(fixture_parse(&f, "RETIRED_OPS"), 0);
	EXPECT_INT(fixture_at(&f, 0)->attr.config, 0xc1);
	fixture_remove(&f);

	fixture_make(&f, fake_root_intel, "no-such-cpu", true, true);
	EXPECT_INT(fixture_parse(&f, "RETIRED_OPS"), -ENOENT);
	EXPECT(strstr(f.err.text, "no table of the CPU 'no-such-cpu'"));
	fixture_remove(&f);
}
