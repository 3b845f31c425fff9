#include <errno.h>
#include <math.h>

#include "base/json.h"
#include "base/str.h"
#include "harness/tap.h"
#include "view/table.h"
#include "view/text.h"

static const struct table_column columns[] = {
	{"self_share", "Self", CELL_SHARE, 0, false, 0},
	{"count", "Samples", CELL_COUNT, 0, false, 0},
	{"time_ns", "Time", CELL_TIME_NS, 0, false, 0},
	{"size_bytes", "Size", CELL_BYTES, 0, false, 0},
	{"ratio", "Ratio", CELL_DOUBLE, 3, false, 0},
	{"hidden", NULL, CELL_COUNT, 0, false, 0},
	{"symbol", "Symbol", CELL_TEXT, 0, false, 12},
};

static struct table *example(void)
{
	struct table *table = NULL;

	if (table_new(columns, 7, &table) < 0)
		return NULL;
	table_double(table, 0.12345);
	table_count(table, 1234567);
	table_count(table, 1234567);
	table_count(table, 1536);
	table_double(table, 1.5);
	table_count(table, 7);
	table_text(table, "a_rather_long_function_name");
	table_double(table, NAN);
	table_unknown(table);
	table_count(table, 999);
	table_count(table, 1000);
	table_double(table, -2);
	table_unknown(table);
	table_text(table, "say \"x,y\"");
	return table;
}

TEST(table_prints_aligned_text)
{
	struct table *table = example();
	struct str out = {0};

	ASSERT(table);
	table_print_text(table, NULL, &out);
	EXPECT_STR(str_text(&out), "  Self    Samples     Time     Size   Ratio  Symbol\n"
				   "12.35%  1,234,567  1.23 ms  1.5 KiB   1.500  a_rat.._name\n"
				   "     -          -   999 ns   1000 B  -2.000  say \"x,y\"\n");
	str_fini(&out);
	table_free(table);
}

TEST(table_prints_csv)
{
	struct table *table = example();
	struct str out = {0};

	ASSERT(table);
	table_print_csv(table, ',', &out);
	EXPECT_STR(str_text(&out),
		   "self_share,count,time_ns,size_bytes,ratio,hidden,symbol\n"
		   "0.12345,1234567,1234567,1536,1.5,7,a_rather_long_function_name\n"
		   ",,999,1000,-2,,\"say \"\"x,y\"\"\"\n");
	str_clear(&out);
	table_print_csv(table, ';', &out);
	EXPECT(strstr(str_text(&out), ";\"say \"\"x,y\"\"\"\n") != NULL);
	str_fini(&out);
	table_free(table);
}

TEST(table_prints_json)
{
	struct table *table = example();
	struct json json = {.compact = true};

	ASSERT(table);
	json_object(&json, NULL);
	table_print_json(table, "rows", &json);
	json_end_object(&json);
	EXPECT_STR(str_text(&json.out),
		   "{\"rows\":[{\"self_share\":0.12345,\"count\":1234567,\"time_ns\":1234567,"
		   "\"size_bytes\":1536,"
		   "\"ratio\":1.5,\"hidden\":7,\"symbol\":\"a_rather_long_function_name\"},"
		   "{\"self_share\":null,\"count\":null,\"time_ns\":999,\"size_bytes\":1000,"
		   "\"ratio\":-2,"
		   "\"hidden\":null,\"symbol\":\"say \\\"x,y\\\"\"}]}\n");
	str_fini(&json.out);
	table_free(table);
}

TEST(table_sorts_stably_with_unknown_last)
{
	static const struct table_column two[] = {
		{"n", "N", CELL_COUNT, 0, false, 0},
		{"name", "Name", CELL_TEXT, 0, false, 0},
	};
	static const struct {
		int n;
		const char *name;
	} rows[] = {{3, "c"}, {-1, "unknown"}, {1, "first"}, {1, "second"}, {9, "most"}};
	struct table *table = NULL;
	struct str out = {0};
	const struct table_style bare = {.no_header = true};

	ASSERT(table_new(two, 2, &table) == 0);
	for (int i = 0; i < 5; i++) {
		if (rows[i].n < 0)
			table_unknown(table);
		else
			table_count(table, (uint64_t)rows[i].n);
		table_text(table, rows[i].name);
	}
	EXPECT_INT(table_row_count(table), 5);
	table_sort(table, 0, true);
	table_print_text(table, &bare, &out);
	EXPECT_STR(str_text(&out), "9  most\n3  c\n1  first\n1  second\n-  unknown\n");
	str_clear(&out);
	table_sort(table, 1, false);
	table_print_text(table, &bare, &out);
	EXPECT_STR(str_text(&out), "3  c\n1  first\n9  most\n1  second\n-  unknown\n");
	EXPECT_INT(table_status(table), 0);
	str_fini(&out);
	table_free(table);
}

TEST(table_fits_a_terminal)
{
	static const struct table_column three[] = {
		{"a", "A", CELL_TEXT, 0, false, 0},
		{"n", "N", CELL_COUNT, 0, false, 0},
		{"b", "B", CELL_TEXT, 0, false, 0},
	};
	struct table *table = NULL;
	struct str out = {0};
	const struct table_style style = {.width = 40, .color = true};

	ASSERT(table_new(three, 3, &table) == 0);
	table_text(table, "0123456789012345678901234567890123456789");
	table_count(table, 1000);
	table_text(table, "short");
	table_print_text(table, &style, &out);
	EXPECT_STR(str_text(&out), "\033[1mA                               N  B\033[0m\n"
				   "012345678901..890123456789  1,000  short\n");
	str_fini(&out);
	table_free(table);
}

TEST(text_is_decoded_measured_and_cut_on_code_points)
{
	struct str out = {0};

	EXPECT_INT(text_width("abc"), 3);
	EXPECT_INT(text_width("\xe4\xb8\xad\xe6\x96\x87"), 4); /* two Chinese characters */
	EXPECT_INT(text_width("e\xcc\x81"), 1);                /* e and a combining accent */
	EXPECT_INT(text_width("\xff\xfe"), 2);
	text_cut_middle(&out, "\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad\xe6\x96\x87", 7);
	EXPECT_STR(str_text(&out), "\xe4\xb8\xad..\xe6\x96\x87");
	str_clear(&out);
	text_clean(&out,
		   "a\033[31mb\xc3(\xe2\x80\xae"
		   "c\0d",
		   16);
	EXPECT_STR(str_text(&out), "a\xef\xbf\xbd[31mb\xef\xbf\xbd(\xef\xbf\xbd"
				   "c\xef\xbf\xbd"
				   "d\xef\xbf\xbd");
	str_clear(&out);
	text_xml(&out, "f<T>(\"&\", 'x')\x01", 15);
	EXPECT_STR(str_text(&out), "f&lt;T&gt;(&quot;&amp;&quot;, &#39;x&#39;)\xef\xbf\xbd");
	str_clear(&out);
	text_group(&out, 18446744073709551615ULL);
	EXPECT_STR(str_text(&out), "18,446,744,073,709,551,615");
	str_clear(&out);
	text_group(&out, 999);
	EXPECT_STR(str_text(&out), "999");
	str_fini(&out);
}
