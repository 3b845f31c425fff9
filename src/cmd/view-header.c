#include "cmd/view-header.h"

#include <string.h>
#include <time.h>

#include "base/util.h"
#include "view/text.h"

void view_header_line(struct str *out, const char *what, const char *text)
{
	if (!text || !text[0])
		return;
	str_printf(out, "# %-9s", what);
	text_clean(out, text, strlen(text));
	str_putc(out, '\n');
}

static const char *clock_name(int32_t clock)
{
	static const char *const names[] = {
		[CLOCK_REALTIME] = "realtime",
		[CLOCK_MONOTONIC] = "monotonic",
		[CLOCK_MONOTONIC_RAW] = "monotonic_raw",
		[CLOCK_BOOTTIME] = "boottime",
		[CLOCK_TAI] = "tai",
	};

	return clock >= 0 && (size_t)clock < ARRAY_LEN(names) ? names[clock] : NULL;
}

/* "2026-11-30T12:00:01.123456Z"; false when the recording does not tell. */
static bool wall_time(const struct session_info *info, char *buf, size_t size)
{
	time_t seconds = (time_t)(info->wall_time_ns / NSEC_PER_SEC);
	struct tm tm;
	size_t len;

	if (info->wall_time_ns == 0 || !gmtime_r(&seconds, &tm))
		return false;
	len = strftime(buf, size, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf + len, size - len, ".%06uZ",
		 (unsigned)(info->wall_time_ns % NSEC_PER_SEC / 1000));
	return len > 0;
}

static void put_cpus(const struct session_info *info, struct str *out)
{
	if (info->cpus_configured == 0)
		return;
	str_printf(out, "# CPUs     %u online of %u\n", info->cpus_online, info->cpus_configured);
}

void view_header_text(const struct session *session, struct str *out)
{
	const struct session_info *info = session_info(session);
	uint32_t count;
	const struct session_fact *facts = session_facts(session, &count);
	char time[64];

	view_header_line(out, "host", info->hostname);
	view_header_line(out, "kernel", info->os_release);
	view_header_line(out, "machine", info->arch);
	view_header_line(out, "cpu", info->cpu_desc);
	put_cpus(info, out);
	view_header_line(out, "command", info->cmdline);
	view_header_line(out, "recorder", info->version);
	view_header_line(out, "clock", clock_name(info->clock));
	if (wall_time(info, time, sizeof(time)))
		view_header_line(out, "start", time);
	if (info->branches)
		view_header_line(out, "branches", "each sample has the branches before it");
	for (uint32_t i = 0; i < count; i++) {
		str_printf(out, "# header   %s: ", facts[i].key);
		text_clean(out, facts[i].text, strlen(facts[i].text));
		str_putc(out, '\n');
	}
}

void view_header_json(const struct session *session, struct json *json)
{
	const struct session_info *info = session_info(session);
	uint32_t count;
	const struct session_fact *facts = session_facts(session, &count);
	char time[64];

	json_object(json, "recording");
	json_text(json, "host", info->hostname);
	json_text(json, "kernel", info->os_release);
	json_text(json, "machine", info->arch);
	json_text(json, "cpu", info->cpu_desc);
	json_text(json, "command", info->cmdline);
	json_text(json, "recorder", info->version);
	json_text(json, "clock", clock_name(info->clock));
	json_text(json, "start", wall_time(info, time, sizeof(time)) ? time : NULL);
	json_u64_if(json, "cpus_online", info->cpus_configured > 0, info->cpus_online);
	json_object(json, "header");
	for (uint32_t i = 0; i < count; i++)
		if (facts[i].is_number)
			json_u64(json, facts[i].key, facts[i].number);
		else
			json_text(json, facts[i].key, facts[i].text);
	json_end_object(json);
	json_end_object(json);
}
