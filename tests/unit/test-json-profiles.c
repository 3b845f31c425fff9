/* speedscope and Firefox profiles: small documents of our own, faults with their places, reading
 * back what was written, and the files of other tools. */
#include <errno.h>
#include <stdlib.h>

#include "base/file.h"
#include "harness/tap.h"
#include "profile/firefox.h"
#include "profile/folded.h"
#include "profile/speedscope.h"

enum format {
	SPEEDSCOPE,
	FIREFOX
};

static int read_text(enum format format, const char *text, struct profile *ret, struct err *err)
{
	return format == SPEEDSCOPE ? speedscope_read(text, strlen(text), ret, err)
				    : firefox_read(text, strlen(text), false, ret, err);
}

/* What the document holds as folded lines; value -1: the default one. */
static void expect_folded(enum format format, const char *text, int value, const char *want)
{
	const struct folded_options options = {
		.root = FOLDED_ROOT_PID, .annotate = true, .value = value};
	struct str out = {0};
	struct err err = {0};
	struct profile p;
	int r = read_text(format, text, &p, &err);

	EXPECT_STR(err.text, "");
	if (r < 0)
		return;
	EXPECT_INT(folded_write(&p, &options, &out, &err), 0);
	EXPECT_STR(str_text(&out), want);
	str_fini(&out);
	profile_fini(&p);
}

static void expect_fault(enum format format, const char *text, const char *words)
{
	struct err err = {0};
	struct profile p;
	int r = read_text(format, text, &p, &err);

	EXPECT(r < 0);
	if (!strstr(err.text, words))
		EXPECT_STR(err.text, words);
	if (r == 0)
		profile_fini(&p);
}

#define SHARED \
	"\"shared\":{\"frames\":[{\"name\":\"a\",\"file\":\"f.c\",\"line\":3},{\"name\":\"b\"}]}"
#define ONE(profile) "{\"profiles\":[" profile "]," SHARED "}"

TEST(speedscope_sampled)
{
	/* The table of frames comes last; unknown members and nulls are passed over. */
	expect_folded(
		SPEEDSCOPE,
		ONE("{\"type\":\"sampled\",\"x\":{\"samples\":[1]},\"unit\":\"none\",\"samples\":"
		    "[[0,1],[],[0,1],[0]],\"weights\":[1,2,3,9007199254740993]}"),
		-1, "[unknown] 2\na 9007199254740993\na;b 4\n");
	/* Time becomes nanoseconds, what rounding takes is carried on. */
	expect_folded(
		SPEEDSCOPE,
		ONE("{\"type\":\"sampled\",\"unit\":\"microseconds\",\"samples\":[[0],[1],[0]],"
		    "\"weights\":[0.0004,0.0004,0.0004]}"),
		-1, "b 1\n");
}

TEST(speedscope_evented)
{
	/* What is open at the end lasts until endValue; an empty stack takes no time. */
	expect_folded(
		SPEEDSCOPE,
		ONE("{\"type\":\"evented\",\"unit\":\"bytes\",\"endValue\":20,\"events\":["
		    "{\"type\":\"O\",\"frame\":0,\"at\":1},{\"type\":\"O\",\"frame\":1,\"at\":3},"
		    "{\"type\":\"C\",\"frame\":1,\"at\":7},{\"type\":\"C\",\"frame\":0,\"at\":8},"
		    "{\"type\":\"O\",\"frame\":1,\"at\":18}]}"),
		-1, "a 3\na;b 4\nb 2\n");
}

/* Profiles of one unit are threads, of several units they are values. */
TEST(speedscope_threads)
{
#define PART(name, unit)                                                     \
	"{\"type\":\"sampled\",\"name\":\"" name "\",\"unit\":\"" unit "\"," \
	"\"samples\":[[0]],\"weights\":[7]}"
	expect_folded(SPEEDSCOPE, ONE(PART("t1", "none") "," PART("t2", "none")), -1,
		      "t1;a 7\nt2;a 7\n");
	expect_folded(SPEEDSCOPE, ONE(PART("t1", "none") "," PART("t2", "seconds")), 1,
		      "t2;a 7000000000\n");
}

TEST(speedscope_faults)
{
	expect_fault(SPEEDSCOPE, "{\"shared\":{},\"profiles\":[", "byte 25");
	expect_fault(SPEEDSCOPE, "{\"shared\":{},\"profiles\":[]}", "no profiles");
	expect_fault(SPEEDSCOPE, ONE("{}"), "profile 0: neither sampled nor evented");
	expect_fault(SPEEDSCOPE, ONE("{\"type\":\"sampled\"}"), "must be lists");
	expect_fault(SPEEDSCOPE, ONE("{\"type\":\"sampled\",\"samples\":[[2]],\"weights\":[1]}"),
		     "frame 2 of 2");
	expect_fault(SPEEDSCOPE,
		     ONE("{\"type\":\"sampled\",\"samples\":[[\"a\"]],\"weights\":[1]}"),
		     "what is no frame");
	expect_fault(SPEEDSCOPE, ONE("{\"type\":\"sampled\",\"samples\":[[1]],\"weights\":[]}"),
		     "as many samples as weights");
	expect_fault(SPEEDSCOPE,
		     ONE("{\"type\":\"sampled\",\"samples\":[[1]],\"weights\":[1e300]}"),
		     "profile 0");
	expect_fault(
		SPEEDSCOPE,
		ONE("{\"type\":\"evented\",\"events\":[{\"type\":\"C\",\"frame\":0,\"at\":0}]}"),
		"event 1 closes frame 0");
	expect_fault(SPEEDSCOPE,
		     ONE("{\"type\":\"evented\",\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":2},"
			 "{\"type\":\"C\",\"frame\":0,\"at\":1}]}"),
		     "event 2: its time is missing or goes back");
}

/* b is inlined into a, at one address; the kernel's frame has no name. */
#define TABLES                                                                              \
	"\"stackTable\":{\"prefix\":[null,0,1],\"frame\":[0,1,2]},"                         \
	"\"frameTable\":{\"func\":[0,1,2],\"address\":[16,16,32],\"inlineDepth\":[0,1,0],"  \
	"\"line\":[7,8,null],\"category\":[0,0,1]},"                                        \
	"\"funcTable\":{\"name\":[0,1,2],\"resource\":[0,0,1],\"fileName\":[3,null,null]}," \
	"\"resourceTable\":{\"lib\":[1,0]}"
#define STRINGS "\"stringArray\":[\"a\",\"b\",\"0x20\",\"a.c\"]"
#define META                                                                            \
	"\"meta\":{\"interval\":1,\"startTime\":5,\"categories\":[{\"name\":\"User\"}," \
	"{\"name\":\"Kernel\"}],\"sampleUnits\":{\"threadCPUDelta\":\"\xc2\xb5s\"}},"   \
	"\"libs\":[{\"name\":\"[kernel.kallsyms]\"},{\"name\":\"p\",\"path\":\"/bin/p\"}]"

TEST(firefox_processed)
{
	struct err err = {0};
	struct profile p;
	const char *document = "{\"threads\":[{\"name\":\"main\",\"pid\":\"12\",\"samples\":{"
			       "\"stack\":[2,null,1,0],"
			       "\"time\":[1,2,3,4],\"threadCPUDelta\":[1000,7,null,3]}," TABLES
			       "," STRINGS "}]," META "}";

	expect_folded(FIREFOX, document, 0,
		      "main-12;a 1\nmain-12;a;b_[i] 1\nmain-12;a;b_[i];[kernel.kallsyms]_[k] 1\n");
	expect_folded(FIREFOX, document, 1,
		      "main-12;a 3000\nmain-12;a;b_[i];[kernel.kallsyms]_[k] 1000000\n");
	ASSERT(read_text(FIREFOX, document, &p, &err) == 0);
	EXPECT_INT(p.time_ns, 5000000);
	EXPECT_INT(p.duration_ns, 3000000);
	EXPECT_INT(p.period, 1000000);
	EXPECT_INT(p.locations.data[p.stacks.data[1].location].address, 16);
	profile_fini(&p);
}

/* Tables, strings and sources that all threads share; times as differences; weights. */
TEST(firefox_shared)
{
	expect_folded(FIREFOX,
		      "{" META ",\"shared\":{" TABLES "," STRINGS
		      ",\"sources\":{\"filename\":[3]}},"
		      "\"threads\":[{\"name\":\"x\",\"samples\":{\"stack\":[1],\"timeDeltas\":[4],"
		      "\"weight\":[2.5],\"weightType\":\"tracing-ms\"}},{\"name\":\"y\"}]}",
		      -1, "x;a;b_[i] 2500000\n");
	expect_folded(FIREFOX,
		      "{" META ",\"shared\":{" STRINGS "},\"threads\":[{\"name\":\"x\",\"samples\":"
		      "{\"stack\":[1,0],\"weight\":[3,4],\"weightType\":\"bytes\"}," TABLES "}]}",
		      -1, "x;a 4\nx;a;b_[i] 3\n");
}

/* Rows under a schema that comes later; names with objects, scripts with lines, addresses. */
TEST(firefox_gecko)
{
	const char *document =
		"{\"meta\":{},\"libs\":[{\"path\":\"/bin/"
		"p\",\"start\":4096,\"end\":8192,\"offset\":512}],"
		"\"threads\":[],\"processes\":[{\"libs\":[{\"path\":\"/bin/"
		"q\",\"start\":4096,\"end\":8192}],"
		"\"threads\":[{\"name\":\"g\",\"tid\":9,\"pid\":8,"
		"\"stringTable\":[\"(root)\",\"0x1010\",\"f(int) (in [kernel.kallsyms])\","
		"\"g (http://x/s.js:12:3)\"],"
		"\"frameTable\":{\"data\":[[0],[1],[2],[3,null,5]],\"schema\":{\"location\":0,"
		"\"line\":2}},"
		"\"stackTable\":{\"data\":[[null,0],[0,1],[1,2],[0,3]],\"schema\":{\"prefix\":0,"
		"\"frame\":1}},"
		"\"samples\":{\"data\":[[2,1.5],[3,2.5],[null,3]],\"schema\":{\"stack\":0,\"time\":"
		"1}}}]}]}";
	struct err err = {0};
	struct profile p;

	expect_folded(FIREFOX, document, -1, "g-8;(root);[q];f(int)_[k] 1\ng-8;(root);g 1\n");
	ASSERT(firefox_read(document, strlen(document), true, &p, &err) == 0);
	bool script = false;
	vec_for_each(&p.functions, function)
		script |=
			strcmp(strtab_text(&p.strings, function->filename), "http://x/s.js") == 0 &&
			function->start_line == 12;
	EXPECT(script);
	int64_t tid = 0;
	EXPECT(profile_label_number(&p, p.samples.data[0].labels, "tid", &tid));
	EXPECT_INT(tid, 9);
	profile_fini(&p);
}

TEST(firefox_faults)
{
	expect_fault(FIREFOX, "{\"meta\":{},\"threads\":[}", "byte 22");
	expect_fault(FIREFOX, "{\"meta\":{},\"threads\":[]}", "no threads");
	expect_fault(FIREFOX, "{\"meta\":{},\"threads\":[{\"samples\":{\"stack\":[0]}}]}",
		     "thread 0: sample 0: stack 0 of 0");
	expect_fault(FIREFOX,
		     "{\"meta\":{},\"threads\":[{\"samples\":{\"stack\":[0]},\"stackTable\":"
		     "{\"prefix\":[1,0],\"frame\":[0,0]}}]}",
		     "thread 0: stack 0: its caller 1 does not come before it");
	/* Indices that point nowhere name nothing, but lose nothing. */
	expect_folded(FIREFOX,
		      "{\"meta\":{},\"threads\":[{\"samples\":{\"stack\":[0]},\"stackTable\":"
		      "{\"prefix\":[null],\"frame\":[99]}}]}",
		      -1, "[unknown] 1\n");
}

static void fill(struct profile *p)
{
	struct profile_mapping mapping = {.start = 0x1000, .limit = 0x9000, .offset = 0x400};
	struct profile_function function = {.start_line = 4};
	struct profile_location location = {.address = 0x1234};
	struct profile_line lines[2] = {{.line = 5}, {.line = 6}};
	struct profile_label label = {0};
	int64_t values[2] = {3, 1234567};
	uint32_t inlined, bare, stack, labels;

	EXPECT_INT(profile_init(p), 0);
	profile_add_value_type(p, "samples", "count");
	profile_add_value_type(p, "cpu", "nanoseconds");
	strtab_intern_text(&p->strings, "/bin/p", &mapping.filename);
	strtab_intern_text(&p->strings, "00112233445566778899aabbccddeeff00112233",
			   &mapping.build_id);
	profile_mapping(p, &mapping, &location.mapping);
	for (int i = 0; i < 2; i++) {
		strtab_intern_text(&p->strings, i ? "outer \xc3\xa4" : "inner", &function.name);
		function.system_name = function.name;
		strtab_intern_text(&p->strings, "p.c", &function.filename);
		profile_function(p, &function, &lines[i].function);
	}
	location.line_count = 2;
	profile_location(p, &location, lines, &inlined);
	location.line_count = 0;
	location.address = 0x2000;
	profile_location(p, &location, NULL, &bare);
	strtab_intern_text(&p->strings, "comm", &label.key);
	strtab_intern_text(&p->strings, "worker", &label.text);
	profile_label_set(p, &label, 1, &labels);
	profile_stack(p, 0, inlined, &stack);
	profile_add(p, stack, labels, values);
	profile_stack(p, stack, bare, &stack);
	values[0] = 1;
	profile_add(p, stack, 0, values);
}

/* What was written is read again: the same lines of every value. */
static void expect_same(const struct profile *p, const struct profile *q, int value, int other)
{
	struct folded_options options = {
		.root = FOLDED_ROOT_COMM, .annotate = true, .value = value};
	struct str first = {0}, second = {0};
	struct err err = {0};

	EXPECT_INT(folded_write(p, &options, &first, &err), 0);
	options.value = other;
	EXPECT_INT(folded_write(q, &options, &second, &err), 0);
	EXPECT_STR(str_text(&second), str_text(&first));
	str_fini(&first);
	str_fini(&second);
}

TEST(firefox_round_trip)
{
	struct profile p, q;
	struct err err = {0};

	fill(&p);
	for (int value = 0; value < 2; value++) {
		struct str text = {0};
		uint32_t mapping;

		EXPECT_INT(firefox_write(&p, value, "t", &text, &err), 0);
		EXPECT(firefox_detect(text.data, text.len));
		ASSERT(firefox_read(text.data, text.len, false, &q, &err) == 0);
		expect_same(&p, &q, value, 0);
		mapping = q.locations.data[q.stacks.data[1].location].mapping;
		EXPECT_STR(strtab_text(&q.strings, q.mappings.data[mapping].build_id),
			   "00112233445566778899aabbccddeeff00112233");
		/* Within the file, as in the recording. */
		EXPECT_INT(q.locations.data[q.stacks.data[1].location].address, 0x634);
		EXPECT_INT(q.period, 0);
		profile_fini(&q);
		str_fini(&text);
	}
	profile_fini(&p);
}

TEST(speedscope_round_trip)
{
	const struct folded_options options = {.value = 0};
	struct str text = {0}, lines = {0};
	struct profile p, q;
	struct err err = {0};

	fill(&p);
	EXPECT_INT(speedscope_write(&p, "t", &text, &err), 0);
	EXPECT(speedscope_detect(text.data, text.len));
	EXPECT(!firefox_detect(text.data, text.len));
	ASSERT(speedscope_read(text.data, text.len, &q, &err) == 0);
	EXPECT_INT(q.value_types.len, 2);
	EXPECT_INT(profile_find_value(&q, "cpu"), 1);
	EXPECT_INT(folded_write(&q, &options, &lines, &err), 0);
	EXPECT_STR(str_text(&lines), "outer \xc3\xa4;inner 3\nouter \xc3\xa4;inner;p+0x1400 1\n");
	str_fini(&lines);
	str_fini(&text);
	profile_fini(&q);
	profile_fini(&p);
}

/* Files that other tools wrote: the stacks that stand in them, and every sample. */
TEST(files_of_other_tools)
{
	static const struct {
		const char *name;
		enum format format;
		int64_t total;
	} files[] = {
		{"sampling/speedscope/json/0.0.1/simple.speedscope.json", SPEEDSCOPE, 14},
		{"sampling/speedscope/json/0.1.2/simple-sampled.speedscope.json", SPEEDSCOPE,
		 14000000000},
		{"sampling/speedscope/json/invalid/incomplete-trace.json", SPEEDSCOPE, 100},
		{"sampling/speedscope/json/invalid/out-of-order-events.json", SPEEDSCOPE, -EBADMSG},
		{"sampling/firefox/processed-3.json", FIREFOX, 21},
		{"sampling/simpleperf/perf_with_jit_symbol.gecko.json", FIREFOX, 151},
		{"sampling/simpleperf/perf_with_tracepoint_event.gecko.json", FIREFOX, 45},
	};

	SKIP_IF(tap_data_dir() == NULL, "CULPRIT_TEST_DATA is not set");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct err err = {0};
		struct profile p;
		int64_t total = 0;
		size_t size;
		char *data;
		int r;

		SKIP_IF(tap_data(files[i].name) == NULL, "no %s", files[i].name);
		ASSERT(file_read(tap_data(files[i].name), 1 << 26, &data, &size, &err) == 0);
		EXPECT(speedscope_detect(data, size) == (files[i].format == SPEEDSCOPE));
		EXPECT(firefox_detect(data, size) == (files[i].format == FIREFOX));
		r = read_text(files[i].format, data, &p, &err);
		EXPECT_INT(r, files[i].total < 0 ? files[i].total : 0);
		if (r == 0) {
			EXPECT_INT(profile_total(&p, 0, &total), 0);
			EXPECT_INT(total, files[i].total);
			profile_fini(&p);
		}
		free(data);
	}
}
